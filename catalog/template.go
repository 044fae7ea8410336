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

// Condition types that Template owns, and their reasons. Reconcile never touches them.
const (
	ConditionTemplatesHaveResolved = "TemplatesHaveResolved" // all placeholders of the image template are known and make an image reference
	ConditionResolvedImage         = "ResolvedImage"         // the message is the image that the template gives

	ReasonAllTemplatesResolved  = "AllTemplatesResolved"  // nothing to do
	ReasonUnableToResolve       = "UnableToResolve"       // correct the annotation olm.catalogImageTemplate; spec.image stays as it is until then
	ReasonImageTemplateResolved = "ImageTemplateResolved" // spec.image follows the image template
)

const annotationTemplate = "olm.catalogImageTemplate"

// TemplateInput is everything Template looks at.
type TemplateInput struct {
	Now           time.Time               // the instant of this call; required
	CatalogSource *v1alpha1.CatalogSource // the one whose annotation olm.catalogImageTemplate counts; required
	ServerVersion string                  // the API server's gitVersion, such as v1.30.2; empty: unknown
}

// Template makes spec.image follow the annotation olm.catalogImageTemplate, in which {kube_major_version},
// {kube_minor_version} and {kube_patch_version} stand for parts of the API server's version, and reports in two conditions how
// that went. Without the annotation it removes the two conditions. The conditions are written once spec.image is observed to
// be right.
//
// The error is an *olmcore.InputError for a missing CatalogSource or Now.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalogtemplate, syncCatalogSources.
// Differs: spec and status are written one after the other; OLM writes them at once and loses the status.
func Template(in TemplateInput) (r olmcore.Result, err error) {
	switch {
	case in.Now.IsZero():
		return r, &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case in.CatalogSource == nil:
		return r, &olmcore.InputError{Field: "CatalogSource", Problem: "is nil"}
	case in.CatalogSource.DeletionTimestamp != nil:
		return r, nil
	}
	cs := in.CatalogSource
	template := cs.Annotations[annotationTemplate]
	image, problem := resolveTemplate(template, in.ServerVersion)
	if template != "" && problem == "" && cs.Spec.Image != image {
		after := cs.DeepCopy()
		after.Spec.Image = image
		cause := olmcore.Cause{Reason: ReasonImageTemplateResolved, Message: "the image template gives another image"}
		r.Actions = []olmcore.Action{olmcore.UpdateOf(cs, after, cause)}
		return r, nil
	}
	conditions := slices.Clone(cs.Status.Conditions)
	if !setTemplateConditions(&conditions, in, image, problem) {
		return r, nil
	}
	after := cs.DeepCopy()
	after.Status.Conditions = conditions
	cause := olmcore.Cause{Reason: ReasonStatusChanged, Message: "the recorded conditions are not those of the image template"}
	r.Actions = []olmcore.Action{olmcore.UpdateStatusOf(cs, after, cause)}
	if template != "" && problem != "" {
		path := "metadata.annotations[" + annotationTemplate + "]"
		r.Diagnostics = []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, ReasonUnableToResolve, olmcore.RefOf(cs), path, "%s", problem)}
	}
	return r, nil
}

// setTemplateConditions reports whether it changed the conditions.
func setTemplateConditions(conditions *[]metav1.Condition, in TemplateInput, image, problem string) bool {
	if in.CatalogSource.Annotations[annotationTemplate] == "" {
		removed := meta.RemoveStatusCondition(conditions, ConditionTemplatesHaveResolved)
		return meta.RemoveStatusCondition(conditions, ConditionResolvedImage) || removed
	}
	c := isTrue(ReasonAllTemplatesResolved, "catalog image reference was successfully resolved")
	if problem != "" {
		c = isFalse(ReasonUnableToResolve, problem)
	}
	c.Type, c.ObservedGeneration, c.LastTransitionTime = ConditionTemplatesHaveResolved, in.CatalogSource.Generation, olmcore.Timestamp(in.Now)
	changed := meta.SetStatusCondition(conditions, c)
	c.Type, c.Message = ConditionResolvedImage, clip(image, 32768)
	return meta.SetStatusCondition(conditions, c) || changed
}

// resolveTemplate returns what a template gives, with "missing" for what is not known, and why that cannot be used; empty when
// it can.
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

// imageReference is the grammar of image references: a name of at most 255 characters, which may start with a host, then a tag
// and a digest.
var imageReference = regexp.MustCompile(`^((?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*(?::[0-9]+)?/|\[[a-fA-F0-9:]+\](?::[0-9]+)?/)?` +
	`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)` +
	`(?::\w[\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)

func isImageReference(image string) bool {
	match := imageReference.FindStringSubmatch(image)
	return match != nil && len(match[1]) <= 255
}
