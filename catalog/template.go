// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// Types of the conditions that Template owns. Reconcile does not change them.
const (
	// ConditionTemplatesHaveResolved reports whether the image template resolves to an image reference.
	ConditionTemplatesHaveResolved = "TemplatesHaveResolved"
	// ConditionResolvedImage contains the resolved image in its message.
	ConditionResolvedImage = "ResolvedImage"
)

// Reasons of the conditions and actions of Template.
const (
	// ReasonAllTemplatesResolved means that the image template was resolved.
	ReasonAllTemplatesResolved = "AllTemplatesResolved"
	// ReasonUnableToResolve means that the image template cannot be resolved, and spec.image is not changed.
	// Correct the annotation olm.catalogImageTemplate.
	ReasonUnableToResolve = "UnableToResolve"
	// ReasonImageTemplateResolved means that spec.image is set to the resolved image.
	ReasonImageTemplateResolved = "ImageTemplateResolved"
)

const annotationTemplate = "olm.catalogImageTemplate"

// TemplateInput contains everything that Template reads.
type TemplateInput struct {
	// Now is the time of this call. Required.
	Now time.Time
	// CatalogSource is the CatalogSource with the annotation olm.catalogImageTemplate. Required.
	CatalogSource *v1alpha1.CatalogSource
	// ServerVersion is the gitVersion of the API server, for example v1.30.2. It is empty if the version is unknown.
	ServerVersion string
}

// Template sets spec.image to the image that the annotation olm.catalogImageTemplate resolves to, and reports the
// result in two conditions. The placeholders {kube_major_version}, {kube_minor_version} and {kube_patch_version} of
// the annotation are replaced by the version of the API server. Without the annotation, Template removes the two
// conditions. The conditions are written once the resolved image is observed in the spec.
//
// The error is an *olmcore.InputError if Now or CatalogSource is missing.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalogtemplate, syncCatalogSources.
// Differs: OLM writes the spec and the status in one request, so the status is lost. Template writes the status after
// the spec.
func Template(in TemplateInput) (olmcore.Result, error) {
	switch {
	case in.Now.IsZero():
		return olmcore.Result{}, &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case in.CatalogSource == nil:
		return olmcore.Result{}, &olmcore.InputError{Field: "CatalogSource", Problem: "is nil"}
	case in.CatalogSource.DeletionTimestamp != nil:
		return olmcore.Result{}, nil
	}
	cs := in.CatalogSource
	template := cs.Annotations[annotationTemplate]
	image, problem := resolveTemplate(template, in.ServerVersion)
	if template != "" && problem == "" && cs.Spec.Image != image {
		after := cs.DeepCopy()
		after.Spec.Image = image
		cause := olmcore.Cause{Reason: ReasonImageTemplateResolved, Message: "the image template resolves to another image"}
		return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateOf(cs, after, cause)}}, nil
	}
	return templateStatus(in, image, problem), nil
}

// templateStatus writes the conditions of a template that resolves to the image in the spec, or that cannot be
// resolved.
func templateStatus(in TemplateInput, image, problem string) (r olmcore.Result) {
	cs := in.CatalogSource
	conditions := slices.Clone(cs.Status.Conditions)
	if !setTemplateConditions(&conditions, in, image, problem) {
		return r
	}
	after := cs.DeepCopy()
	after.Status.Conditions = conditions
	cause := olmcore.Cause{Reason: ReasonStatusChanged, Message: "the recorded conditions do not match the image template"}
	r.Actions = []olmcore.Action{olmcore.UpdateStatusOf(cs, after, cause)}
	if cs.Annotations[annotationTemplate] != "" && problem != "" {
		path := "metadata.annotations[" + annotationTemplate + "]"
		d := olmcore.Diagnose(olmcore.Warning, ReasonUnableToResolve, olmcore.RefOf(cs), path, "%s", problem)
		r.Diagnostics = []olmcore.Diagnostic{d}
	}
	return r
}

// setTemplateConditions sets or removes the conditions of Template. It returns whether it changed them.
func setTemplateConditions(conditions *[]metav1.Condition, in TemplateInput, image, problem string) bool {
	if in.CatalogSource.Annotations[annotationTemplate] == "" {
		removed := meta.RemoveStatusCondition(conditions, ConditionTemplatesHaveResolved)
		return meta.RemoveStatusCondition(conditions, ConditionResolvedImage) || removed
	}
	c := conditionTrue(ReasonAllTemplatesResolved, "catalog image reference was successfully resolved")
	if problem != "" {
		c = conditionFalse(ReasonUnableToResolve, problem)
	}
	c.ObservedGeneration = in.CatalogSource.Generation
	c.LastTransitionTime = olmcore.Timestamp(in.Now)
	c.Type = ConditionTemplatesHaveResolved
	changed := meta.SetStatusCondition(conditions, c)
	c.Type = ConditionResolvedImage
	c.Message = clip(image, 32768)
	return meta.SetStatusCondition(conditions, c) || changed
}

// resolveTemplate returns the image that a template resolves to. If the image cannot be used, problem says why.
// Unknown parts of the version are replaced by "missing".
func resolveTemplate(template, gitVersion string) (image, problem string) {
	version, err := semver.Parse(strings.TrimPrefix(gitVersion, "v"))
	image = template
	var unknown []string
	for _, part := range [...]struct {
		placeholder string
		value       uint64
	}{{"{kube_major_version}", version.Major}, {"{kube_minor_version}", version.Minor}, {"{kube_patch_version}", version.Patch}} {
		if !strings.Contains(image, part.placeholder) {
			continue
		}
		value := strconv.FormatUint(part.value, 10)
		if err != nil {
			value = "missing"
			unknown = append(unknown, strconv.Quote(part.placeholder))
		}
		image = strings.ReplaceAll(image, part.placeholder, value)
	}
	var reasons []string
	if len(unknown) > 0 {
		reasons = append(reasons, "variable(s) "+strings.Join(unknown, ", ")+" could not be resolved")
	}
	if !isImageReference(image) {
		reasons = append(reasons, "one or more template(s) has improper syntax")
	}
	if len(reasons) > 0 {
		problem = "cannot construct catalog image reference, because " + strings.Join(reasons, " and ")
	}
	return image, problem
}

// imageReference matches image references: a name, which may start with a host, and an optional tag and digest. The
// name is the first group.
var imageReference = regexp.MustCompile(`^((?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])` +
	`(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*(?::[0-9]+)?/|\[[a-fA-F0-9:]+\](?::[0-9]+)?/)?` +
	`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)` +
	`(?::\w[\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)

// isImageReference reports whether text is an image reference whose name has at most 255 characters.
func isImageReference(image string) bool {
	match := imageReference.FindStringSubmatch(image)
	return match != nil && len(match[1]) <= 255
}
