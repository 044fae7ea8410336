// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/olmcore"
)

// maxVerdicts bounds the custom resources that a message names.
const maxVerdicts = 100

// SchemaChange is installplan.SchemaChange.
type SchemaChange struct {
	Before, After *apiextensionsv1.CustomResourceDefinition
	Versions      []string
}

// ResourceVerdict is installplan.ResourceVerdict.
type ResourceVerdict struct {
	CustomResourceDefinition, Version string
	Namespace, Name                   string
	Old, New                          []string
	ReadError                         string
	Unread                            int
}

func (v ResourceVerdict) id() string {
	if v.Namespace == "" {
		return v.Name
	}
	return v.Namespace + "/" + v.Name
}

// brokenResources says which custom resources the new schema would make invalid, and
// what is to be judged for that. Versions whose schema stays the same, and resources that
// are invalid already, do not count.
func (d Definition) brokenResources() Decision {
	have := d.Observed
	changed := changedVersions(have, d.Desired)
	if len(changed) == 0 {
		return Decision{}
	}
	decision := Decision{Change: &SchemaChange{Before: have, After: d.Desired, Versions: changed}}
	var problems, already, converted []string
	for _, v := range d.verdicts(changed) {
		switch text := have.Spec.Names.Kind + " " + v.id(); {
		case v.ReadError != "":
			problems = append(problems, v.ReadError)
		case v.Unread > 0:
			decision = decision.saying(report.Plan(olmcore.Warning, report.Truncated,
				"%d custom resources of %s were not judged by the schema of version %s", v.Unread, have.Name, v.Version))
		case len(v.New) == 0:
		case len(v.Old) > 0:
			already = append(already, text+" is invalid already: "+aggregate(v.Old))
		case Converts(d.Desired.Spec.Conversion):
			converted = append(converted, text+" is invalid under the new schema: "+aggregate(v.New))
		default:
			gvk := fmt.Sprintf("%s/%s, Kind=%s", have.Spec.Group, v.Version, have.Spec.Names.Kind)
			problems = append(problems, fmt.Sprintf("error validating %s %q: updated validation is too restrictive: %s", gvk, v.id(), aggregate(v.New)))
		}
	}
	cut := func(findings []string) []string {
		if len(findings) <= maxVerdicts {
			return findings
		}
		decision = decision.saying(report.Plan(olmcore.Info, report.Truncated,
			"%d of %d findings about custom resources of %s are named", maxVerdicts, len(findings), have.Name))
		return findings[:maxVerdicts]
	}
	for _, text := range cut(already) {
		decision = decision.saying(report.Plan(olmcore.Info, report.ExistingResourceInvalid, "%s", report.Clip(text)))
	}
	for _, text := range cut(converted) {
		decision = decision.saying(report.Plan(olmcore.Warning, report.ExistingResourceInvalid, "%s", report.Clip(text)))
	}
	if len(problems) > 0 {
		decision.Message = fmt.Sprintf("error validating existing CRs against new CRD's schema for %q: %s", have.Name, strings.Join(cut(problems), "; "))
	}
	return decision
}

// verdicts returns those of the definition and of versions, sorted. Of a plan that runs
// as an account of its namespace, whose readers may be allowed to see that alone, they
// neither name resources of others nor hold their values.
func (d Definition) verdicts(versions []string) []ResourceVerdict {
	var found []ResourceVerdict
	for _, v := range d.Resources {
		if v.CustomResourceDefinition == d.Observed.Name && slices.Contains(versions, v.Version) {
			found = append(found, v)
		}
	}
	slices.SortFunc(found, func(a, b ResourceVerdict) int {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name), strings.Compare(a.ReadError, b.ReadError), cmp.Compare(a.Unread, b.Unread))
	})
	for i := range found {
		if v := &found[i]; d.Hidden && v.Namespace != d.Known.Namespace {
			v.Namespace, v.Name = "", "of another namespace"
			v.Old, v.New = hidden(v.Old), hidden(v.New)
		}
	}
	return found
}

func hidden(findings []string) []string {
	if len(findings) == 0 {
		return nil
	}
	return []string{"(not shown)"}
}

// changedVersions returns those that are served before and after, by schemas that
// differ, sorted.
func changedVersions(have, desired *apiextensionsv1.CustomResourceDefinition) []string {
	var names []string
	for i := range have.Spec.Versions {
		before := &have.Spec.Versions[i]
		after := versionOf(desired, before.Name)
		if before.Served && after != nil && after.Served && !apiequality.Semantic.DeepEqual(before.Schema, after.Schema) {
			names = append(names, before.Name)
		}
	}
	slices.Sort(names)
	return names
}

// aggregate words several findings as Kubernetes does.
func aggregate(findings []string) string {
	if len(findings) == 1 {
		return findings[0]
	}
	return "[" + strings.Join(findings, ", ") + "]"
}

func versionOf(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}
