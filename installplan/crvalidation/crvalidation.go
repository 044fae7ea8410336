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

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

const (
	// maxResources is how many custom resources of one version are judged, the first by namespace and name. How many
	// more there are is part of the result.
	maxResources = 10_000
	// maxFindings is how many things are said about one resource.
	maxFindings = 20
)

// bounds are how many resources of a version are judged, and how much is said of one.
type bounds struct{ resources, findings int }

// Judge reads the custom resources of every version of changes, of all namespaces, and returns one verdict for each
// that the new schema finds wrong, sorted by definition, version, namespace and name. A resource is judged as the API
// server would see it: pruned and defaulted by the schema, then held against its types and bounds, its list types,
// embedded metadata and CEL rules, but for those that compare with an older state. What cannot be read is a verdict
// with a ReadError, and what is beyond 10,000 of a version one with a number. The error is ctx's, or an
// *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, validateExistingCRs.
// Differs: versions whose schema stays the same are not looked at, the old schema is asked too, all resources are named
// and not the first, defaults and CEL rules count, and the number of resources is bounded.
func Judge(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) {
	return judgeWithin(ctx, r, changes, bounds{maxResources, maxFindings})
}

func judgeWithin(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange, most bounds) ([]installplan.ResourceVerdict, error) {
	var verdicts []installplan.ResourceVerdict
	left := &budget{rules: maxRules, pairs: maxPairs}
	for i, change := range changes {
		if change.Before == nil || change.After == nil {
			return nil, &olmcore.InputError{Field: fmt.Sprintf("changes[%d]", i), Problem: "lacks a definition"}
		}
		if !established(change.Before) {
			continue // there can be none yet
		}
		for _, version := range change.Versions {
			resources, err := read(ctx, r, change.Before, version)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				verdicts = append(verdicts, installplan.ResourceVerdict{
					CustomResourceDefinition: change.Before.Name, Version: version, ReadError: fmt.Sprintf("error listing %s of version %s: %s", change.Before.Name, version, err),
				})
				continue
			}
			found, err := compare(ctx, change, version, resources, most, left)
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

// read lists the custom resources of one version, as JSON values.
func read(ctx context.Context, r olmcore.Reader, crd *apiextensionsv1.CustomResourceDefinition, version string) ([]resource, error) {
	objects, err := r.List(ctx, schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind}, "", nil)
	if err != nil {
		return nil, err
	}
	resources := make([]resource, 0, len(objects))
	for _, o := range objects {
		if olmcore.KeyOf(o) != (olmcore.Key{}) {
			resources = append(resources, resource{o.GetNamespace(), o.GetName(), o})
		}
	}
	slices.SortFunc(resources, func(a, b resource) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
	return resources, nil
}

type resource struct {
	namespace, name string
	object          olmcore.Object
}

// compare holds the resources of one version against both schemas.
func compare(ctx context.Context, change installplan.SchemaChange, version string, resources []resource, most bounds, left *budget) ([]installplan.ResourceVerdict, error) {
	verdict := installplan.ResourceVerdict{CustomResourceDefinition: change.Before.Name, Version: version}
	var verdicts []installplan.ResourceVerdict
	unread := max(0, len(resources)-most.resources)
	resources = resources[:len(resources)-unread]
	if len(resources) == 0 {
		return nil, nil
	}
	after := newJudge(change.After, version)
	var before *judge // few resources are invalid, so it is rarely needed
	for i, r := range resources {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next := verdict
		next.Namespace, next.Name = r.namespace, r.name
		var judged bool
		if next.New, judged = after.findings(ctx, r.object, most.findings, left); judged && len(next.New) == 0 {
			continue
		}
		if judged {
			if before == nil {
				before = newJudge(change.Before, version)
			}
			next.Old, judged = before.findings(ctx, r.object, most.findings, left)
		}
		if !judged {
			unread += len(resources) - i
			break
		}
		verdicts = append(verdicts, next)
	}
	if unread > 0 {
		verdict.Unread = unread
		verdicts = slices.Insert(verdicts, 0, verdict)
	}
	return verdicts, nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
