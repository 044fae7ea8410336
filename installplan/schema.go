// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/olmcore"
)

// maxVerdicts bounds the custom resources that a message names.
const maxVerdicts = 100

// SchemaChange asks for the judgement of custom resources: a step gives a
// CustomResourceDefinition other schemas.
type SchemaChange struct {
	// Before is the definition that is there, After the one of the step.
	Before, After *apiextensionsv1.CustomResourceDefinition
	// Versions are those whose custom resources must be judged, sorted: served
	// before and after, by schemas that differ.
	Versions []string
}

// SchemaChanges returns what must be judged before Reconcile may look at in: the
// caller reads the custom resources of each version, holds them against both
// schemas, and sets in.CustomResources. Module installplan/crvalidation does
// that. Without an answer nothing is refused on their behalf. A plan that changes
// no schema asks for nothing. The error is that of Reconcile.
func SchemaChanges(in Input) ([]SchemaChange, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	if in.isComplete() || !slices.ContainsFunc(in.InstallPlan.Status.Plan, func(s *v1alpha1.Step) bool { return s != nil && s.Resource.Kind == kindCRD }) {
		return nil, nil
	}
	d, err := newDecision(in, false)
	return d.schemas, err
}

// brokenResources says which custom resources a new schema would make invalid.
// Versions whose schema stays the same, and resources that are invalid already,
// do not count.
func (e *evaluation) brokenResources(have, desired *apiextensionsv1.CustomResourceDefinition) string {
	versions := changedVersions(have, desired)
	if len(versions) == 0 {
		return ""
	}
	e.d.schemas = append(e.d.schemas, SchemaChange{Before: have, After: desired, Versions: versions})
	converted := desired.Spec.Conversion != nil && desired.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	var problems, already, converting []string
	for _, v := range e.verdictsOf(have.Name) {
		if !slices.Contains(versions, v.Version) {
			continue
		}
		if e.mayNotSee(v) {
			v.Namespace, v.Name = "", "of another namespace"
			v.Old, v.New = hidden(v.Old), hidden(v.New)
		}
		switch text := have.Spec.Names.Kind + " " + v.id(); {
		case v.ReadError != "":
			problems = append(problems, v.ReadError)
		case v.Unread > 0:
			e.d.warn(ReasonTruncated, "", "%d custom resources of %s were not judged by the schema of version %s", v.Unread, have.Name, v.Version)
		case len(v.New) == 0:
		case len(v.Old) > 0:
			already = append(already, text+" is invalid already: "+aggregate(v.Old))
		case converted:
			converting = append(converting, text+" is invalid under the new schema: "+aggregate(v.New))
		default:
			gvk := fmt.Sprintf("%s/%s, Kind=%s", have.Spec.Group, v.Version, have.Spec.Names.Kind)
			problems = append(problems, fmt.Sprintf("error validating %s %q: updated validation is too restrictive: %s", gvk, v.id(), aggregate(v.New)))
		}
	}
	for _, text := range e.cut(have.Name, already) {
		e.d.diagnose(olmcore.Info, ReasonExistingResourceInvalid, "", "%s", clip(text))
	}
	for _, text := range e.cut(have.Name, converting) {
		e.d.warn(ReasonExistingResourceInvalid, "", "%s", clip(text))
	}
	if len(problems) == 0 {
		return ""
	}
	return fmt.Sprintf("error validating existing CRs against new CRD's schema for %q: %s", have.Name, strings.Join(e.cut(have.Name, problems), "; "))
}

// mayNotSee reports whether a custom resource is none of the plan's readers: those of a
// plan that runs as an account of the namespace may be allowed to see that alone,
// while the findings hold values of the resource.
func (e *evaluation) mayNotSee(v ResourceVerdict) bool {
	return e.plan.Status.AttenuatedServiceAccountRef != nil && v.Namespace != e.plan.Namespace
}

func hidden(findings []string) []string {
	if len(findings) == 0 {
		return nil
	}
	return []string{"(not shown)"}
}

// changedVersions are those that are served before and after, by schemas that
// differ.
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

// cut bounds a list of findings about the resources of one definition.
func (e *evaluation) cut(crd string, findings []string) []string {
	if len(findings) <= maxVerdicts {
		return findings
	}
	e.d.diagnose(olmcore.Info, ReasonTruncated, "", "%d of %d findings about custom resources of %s are named", maxVerdicts, len(findings), crd)
	return findings[:maxVerdicts]
}

func (v *ResourceVerdict) id() string {
	if v.Namespace == "" {
		return v.Name
	}
	return v.Namespace + "/" + v.Name
}

func (e *evaluation) verdictsOf(crd string) []ResourceVerdict {
	var verdicts []ResourceVerdict
	for _, v := range e.d.in.CustomResources {
		if v.CustomResourceDefinition == crd {
			verdicts = append(verdicts, v)
		}
	}
	slices.SortFunc(verdicts, func(a, b ResourceVerdict) int {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name), strings.Compare(a.ReadError, b.ReadError), cmp.Compare(a.Unread, b.Unread))
	})
	return verdicts
}

func versionOf(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}
