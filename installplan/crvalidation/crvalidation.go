// SPDX-License-Identifier: Apache-2.0

// Package crvalidation judges custom resources by the schemas of a CustomResourceDefinition that an InstallPlan is
// about to change, as the API server would: call installplan.Reconcile again with what [Judge] returns for the
// SchemaChanges of its Outcome.
//
//	out, err := installplan.Reconcile(in)
//	...
//	verdicts, err := crvalidation.Judge(ctx, reader, out.SchemaChanges)
//	...
//	in.CustomResources = olmcore.Found(verdicts...)
//	out, err = installplan.Reconcile(in)
//
// It is a module of its own, so that only those who want it build the validation of the API server.
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

// limits are how many custom resources of one version are judged, the first by namespace and name, how many things are
// said about one, and what is left of the work for one Judge. Schemas and resources are written by tenants, and an API
// server bounds the work for one object only.
type limits struct {
	resources, findings int
	rules               int64 // the cost of CEL rules: three objects, as an API server bounds it
	pairs               int   // of entries that lists without duplicates compare: some seconds
}

// Judge reads the custom resources of every version of changes, of all namespaces, and returns one verdict for each that
// the new schema finds wrong, sorted by definition, version, namespace and name. A resource is judged as the API server
// would see it: pruned and defaulted by the schema, then held against its types and bounds, its list types, embedded
// metadata and CEL rules, but for those that compare with an older state. What cannot be read is a verdict with a
// ReadError, and what is beyond 10,000 of a version one with a number. The error is ctx's, or an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, validateExistingCRs.
// Differs: versions whose schema stays the same are not looked at, the old schema is asked too, all resources are named
// and not the first, defaults and CEL rules count, and the number of resources is bounded.
func Judge(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) {
	return judgeWithin(ctx, r, changes, 10_000, 20)
}

func judgeWithin(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange, resources, findings int) ([]installplan.ResourceVerdict, error) {
	var verdicts []installplan.ResourceVerdict
	left := &limits{resources: resources, findings: findings, rules: 3 * celconfig.RuntimeCELCostBudget, pairs: 20_000_000}
	for i, change := range changes {
		if change.Before == nil || change.After == nil {
			return nil, &olmcore.InputError{Field: fmt.Sprintf("changes[%d]", i), Problem: "lacks a definition"}
		}
		if !apihelpers.IsCRDConditionTrue(change.Before, apiextensionsv1.Established) {
			continue // there can be none yet
		}
		for _, version := range change.Versions {
			found, err := judgeVersion(ctx, r, change, version, left)
			if err != nil {
				return nil, err
			}
			verdicts = append(verdicts, found...)
		}
	}
	slices.SortStableFunc(verdicts, func(a, b installplan.ResourceVerdict) int {
		return cmp.Or(strings.Compare(a.CustomResourceDefinition, b.CustomResourceDefinition), strings.Compare(a.Version, b.Version))
	})
	return verdicts, nil
}

// judgeVersion holds the resources of one version against both schemas.
func judgeVersion(ctx context.Context, r olmcore.Reader, change installplan.SchemaChange, version string, left *limits) ([]installplan.ResourceVerdict, error) {
	crd, verdict := change.Before, installplan.ResourceVerdict{CustomResourceDefinition: change.Before.Name, Version: version}
	resources, err := r.List(ctx, schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind}, "", nil)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		verdict.ReadError = fmt.Sprintf("error listing %s of version %s: %s", crd.Name, version, err)
		return []installplan.ResourceVerdict{verdict}, nil
	}
	resources = slices.DeleteFunc(slices.Clone(resources), func(o olmcore.Object) bool { return olmcore.KeyOf(o) == (olmcore.Key{}) })
	slices.SortFunc(resources, func(a, b olmcore.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	judged := resources[:min(len(resources), left.resources)]
	if len(judged) == 0 {
		return nil, nil
	}
	var verdicts []installplan.ResourceVerdict
	after, before := newJudge(change.After, version), (*judge)(nil) // few resources are invalid, so it is rarely needed
	for i, object := range judged {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next := verdict
		next.Namespace, next.Name = object.GetNamespace(), object.GetName()
		var ok bool
		if next.New, ok = after.findings(ctx, object, left); ok && len(next.New) == 0 {
			continue
		}
		if ok {
			if before == nil {
				before = newJudge(change.Before, version)
			}
			next.Old, ok = before.findings(ctx, object, left)
		}
		if !ok {
			judged = judged[:i]
			break
		}
		verdicts = append(verdicts, next)
	}
	if verdict.Unread = len(resources) - len(judged); verdict.Unread > 0 {
		verdicts = slices.Insert(verdicts, 0, verdict)
	}
	return verdicts, nil
}
