// SPDX-License-Identifier: Apache-2.0

package step

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

// judgeResources says which custom resources the new schema would make invalid, and what is to be judged for that.
// Versions whose schema stays the same, and resources that are invalid already, do not count.
func (d definition) judgeResources() (v Verdict) {
	have := d.have
	changed := changedVersions(have, d.desired)
	if len(changed) == 0 {
		return v
	}
	v.Change = &SchemaChange{Before: have, After: d.desired, Versions: changed}
	say := func(severity olmcore.Severity, reason, format string, args ...any) {
		v = v.saying(d.w.about(ofPlan, severity, reason, format, args...))
	}
	var problems, already, converted []string
	for _, r := range d.verdicts(changed) {
		id := strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
		text := have.Spec.Names.Kind + " " + id
		switch {
		case r.ReadError != "":
			problems = append(problems, r.ReadError)
		case r.Unread > 0:
			say(olmcore.Warning, report.Truncated, "%d custom resources of %s were not judged by the schema of version %s", r.Unread, have.Name, r.Version)
		case len(r.New) == 0:
		case len(r.Old) > 0:
			already = append(already, text+" is invalid already: "+aggregate(r.Old))
		case Converts(d.desired.Spec.Conversion):
			converted = append(converted, text+" is invalid under the new schema: "+aggregate(r.New))
		default:
			gvk := fmt.Sprintf("%s/%s, Kind=%s", have.Spec.Group, r.Version, have.Spec.Names.Kind)
			problems = append(problems, fmt.Sprintf("error validating %s %q: updated validation is too restrictive: %s", gvk, id, aggregate(r.New)))
		}
	}
	cut := func(findings []string) []string {
		if len(findings) <= maxVerdicts {
			return findings
		}
		say(olmcore.Info, report.Truncated, "%d of %d findings about custom resources of %s are named", maxVerdicts, len(findings), have.Name)
		return findings[:maxVerdicts]
	}
	for _, text := range cut(already) {
		say(olmcore.Info, report.ExistingResourceInvalid, "%s", report.Clip(text))
	}
	for _, text := range cut(converted) {
		say(olmcore.Warning, report.ExistingResourceInvalid, "%s", report.Clip(text))
	}
	if len(problems) > 0 {
		v.Outcome = Blocked
		v.Message = fmt.Sprintf("error validating existing CRs against new CRD's schema for %q: %s", have.Name, strings.Join(cut(problems), "; "))
	}
	return v
}

// verdicts returns those of the definition and of versions, sorted. Of a plan that runs as an account of its namespace,
// whose readers may be allowed to see that alone, they neither name resources of others nor hold their values.
func (d definition) verdicts(versions []string) []ResourceVerdict {
	found := slices.DeleteFunc(slices.Clone(d.w.CustomResources), func(v ResourceVerdict) bool {
		return v.CustomResourceDefinition != d.have.Name || !slices.Contains(versions, v.Version)
	})
	slices.SortFunc(found, func(a, b ResourceVerdict) int {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name), strings.Compare(a.ReadError, b.ReadError), cmp.Compare(a.Unread, b.Unread))
	})
	for i := range found {
		if v := &found[i]; d.w.Plan.Status.AttenuatedServiceAccountRef != nil && v.Namespace != d.w.Plan.Namespace {
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

// changedVersions returns those that are served before and after, by schemas that differ, sorted.
func changedVersions(have, desired *apiextensionsv1.CustomResourceDefinition) (names []string) {
	for _, before := range have.Spec.Versions {
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
