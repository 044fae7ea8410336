// SPDX-License-Identifier: Apache-2.0

// Package crvalidation validates existing custom resources against the new schemas of a CustomResourceDefinition before
// an InstallPlan changes it. It validates as the API server would. Pass the SchemaChanges of the Outcome to [Judge],
// and call installplan.Reconcile again with the verdicts:
//
//	out, err := installplan.Reconcile(in)
//	...
//	verdicts, err := crvalidation.Judge(ctx, reader, out.SchemaChanges)
//	...
//	in.CustomResources = olmcore.Found(verdicts...)
//	out, err = installplan.Reconcile(in)
//
// Package controllers does this if its Options.Judge is set:
//
//	options.Judge = crvalidation.Live(cluster) // reads an API server in pages, and no cache
//
// The package is a module of its own, because it depends on the validation code of the API server. Programs that do not
// import it need not build that code.
package crvalidation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// limits contains how many custom resources of one version are validated, in the order in which they are read, how many
// findings about one are reported, and the work that is left for one call of Judge. Tenants write schemas and custom
// resources, and an API server limits only the work for one object.
type limits struct {
	resources, findings int
	rules               int64 // the cost of CEL rules: three objects, as an API server bounds it
	pairs               int   // of entries that lists without duplicates compare: some seconds
}

// Judge validates the custom resources of all namespaces for every version in changes. Judge returns one verdict for
// each resource that the new schema rejects, sorted by CRD, version, namespace and name. Judge validates as the API
// server does. A resource is pruned and defaulted first. Then types, limits, list types, embedded metadata and CEL
// rules are checked, except transition rules, which compare with an older state. A CRD that is not Established is
// skipped, because it has no resources.
//
// If resources of a version cannot be read, a verdict with a ReadError reports it. At most 10,000 resources of a
// version are validated. The limit is lower if their CEL rules and lists are expensive. A verdict with Unread reports
// the number of resources that were not validated. The error is the error of ctx, or an *olmcore.InputError.
//
// The Reader returns all resources of a version at once. Use [Live] to read an API server in pages.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, validateExistingCRs.
// Differs: OLM reports only the first resource that the new schema rejects. It does not apply defaults or CEL rules.
// Judge reports all such resources, and also validates them against the old schema. It skips versions with an unchanged
// schema, and limits the number of resources.
func Judge(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) {
	return judgeWithin(ctx, all(r), changes, maxResources, maxFindings)
}

// Limits of one call of Judge.
const (
	maxResources = 10_000
	maxFindings  = 20
)

func judgeWithin(
	ctx context.Context,
	read reading,
	changes []installplan.SchemaChange,
	resources, findings int,
) ([]installplan.ResourceVerdict, error) {
	var verdicts []installplan.ResourceVerdict
	left := &limits{resources: resources, findings: findings, rules: 3 * celconfig.RuntimeCELCostBudget, pairs: 20_000_000}
	for i, change := range changes {
		if change.Before == nil || change.After == nil {
			return nil, &olmcore.InputError{Field: fmt.Sprintf("changes[%d]", i), Problem: "lacks a definition"}
		}
		if !apihelpers.IsCRDConditionTrue(change.Before, apiextensionsv1.Established) {
			continue // it has no custom resources yet
		}
		for _, version := range change.Versions {
			found, err := judgeVersion(ctx, read, &schemas{change: change, version: version}, left)
			if err != nil {
				return nil, err
			}
			verdicts = append(verdicts, found...)
		}
	}
	slices.SortStableFunc(verdicts, func(a, b installplan.ResourceVerdict) int {
		return cmp.Or(strings.Compare(a.CustomResourceDefinition, b.CustomResourceDefinition), strings.Compare(a.Version, b.Version),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return verdicts, nil
}

// judgeVersion validates the custom resources of one version against both schemas, page by page.
func judgeVersion(ctx context.Context, read reading, s *schemas, left *limits) ([]installplan.ResourceVerdict, error) {
	var verdicts []installplan.ResourceVerdict
	crd, room := s.change.Before, left.resources
	gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: s.version, Kind: crd.Spec.Names.Kind}
	for from, more := "", true; more; {
		p, err := read(ctx, gvk, from)
		judged, found := 0, []installplan.ResourceVerdict(nil)
		if err == nil {
			judged, found, err = s.judgePage(ctx, p, room, left)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		verdicts = append(verdicts, found...)
		if err != nil {
			v := s.verdict()
			v.ReadError = fmt.Sprintf("error listing %s of version %s: %s%s", crd.Name, s.version, err, remedy(crd, err))
			return append(verdicts, v), nil
		}
		room -= judged
		unread := p.size - judged
		if unread > 0 || room == 0 && p.left > 0 {
			v := s.verdict()
			v.Unread = unread + p.left
			return append(verdicts, v), nil
		}
		from, more = p.next, p.next != ""
	}
	return verdicts, nil
}

// schemas contains the schemas of one version before and after a change.
type schemas struct {
	change        installplan.SchemaChange
	version       string
	before, after *judge // created on demand, because few resources are invalid
}

func (s *schemas) verdict() installplan.ResourceVerdict {
	return installplan.ResourceVerdict{CustomResourceDefinition: s.change.Before.Name, Version: s.version}
}

// judgePage validates the custom resources of a page until a limit is reached. It returns how many were validated. The
// error is about one that cannot be read.
func (s *schemas) judgePage(
	ctx context.Context,
	p page,
	room int,
	left *limits,
) (judged int, found []installplan.ResourceVerdict, err error) {
	for judged < min(p.size, room) && ctx.Err() == nil {
		object, err := p.resource(judged)
		if err != nil {
			return judged, found, err
		}
		v, ok := s.judge(ctx, object, left)
		if !ok {
			break
		}
		judged++
		if len(v.New) > 0 {
			found = append(found, v)
		}
	}
	return judged, found, nil
}

// judge returns the findings about a custom resource under the new schema. If there are any, it also returns those
// under the old schema. ok is false if the limit of the work is reached.
func (s *schemas) judge(ctx context.Context, object olmcore.Object, left *limits) (v installplan.ResourceVerdict, ok bool) {
	v = s.verdict()
	v.Namespace, v.Name = object.GetNamespace(), object.GetName()
	if s.after == nil {
		s.after = newJudge(s.change.After, s.version)
	}
	v.New, ok = s.after.findings(ctx, object, left)
	if !ok || len(v.New) == 0 {
		return v, ok
	}
	if s.before == nil {
		s.before = newJudge(s.change.Before, s.version)
	}
	v.Old, ok = s.before.findings(ctx, object, left)
	return v, ok
}
