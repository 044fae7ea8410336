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

// Condition types that Template owns, and their reasons. Reconcile never touches
// them.
const (
	// ConditionTemplatesHaveResolved: all placeholders of the image template are known
	// and make an image reference.
	ConditionTemplatesHaveResolved = "TemplatesHaveResolved"
	// ConditionResolvedImage: the message is the image that the template gives.
	ConditionResolvedImage = "ResolvedImage"

	// ReasonAllTemplatesResolved: nothing to do.
	ReasonAllTemplatesResolved = "AllTemplatesResolved"
	// ReasonUnableToResolve: correct the annotation olm.catalogImageTemplate;
	// spec.image stays as it is until then.
	ReasonUnableToResolve = "UnableToResolve"
	// ReasonImageTemplateResolved: spec.image follows the image template.
	ReasonImageTemplateResolved = "ImageTemplateResolved"
)

const annotationTemplate = "olm.catalogImageTemplate"

// TemplateInput is everything Template looks at.
type TemplateInput struct {
	// Now is the instant of this call; required.
	Now time.Time
	// CatalogSource is the object whose annotation olm.catalogImageTemplate counts;
	// required.
	CatalogSource *v1alpha1.CatalogSource
	// ServerVersion is the API server's gitVersion, such as v1.30.2; empty: unknown.
	ServerVersion string
}

// Template makes spec.image follow the annotation olm.catalogImageTemplate, in
// which {kube_major_version}, {kube_minor_version} and {kube_patch_version} stand
// for parts of the API server's version, and reports in two conditions how that went.
// Without the annotation it removes the two conditions. The conditions are written
// once spec.image is observed to be right.
//
// The error is an *olmcore.InputError for a missing CatalogSource or Now.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalogtemplate, syncCatalogSources.
// Differs: spec and status are written one after the other; OLM writes them at once
// and loses the status.
func Template(in TemplateInput) (olmcore.Result, error) {
	switch {
	case in.Now.IsZero():
		return olmcore.Result{}, &olmcore.InputError{Field: "Now", Problem: "is zero"}
	case in.CatalogSource == nil:
		return olmcore.Result{}, &olmcore.InputError{Field: "CatalogSource", Problem: "is nil"}
	}
	cs := in.CatalogSource
	if cs.DeletionTimestamp != nil {
		return olmcore.Result{}, nil
	}
	template := cs.Annotations[annotationTemplate]
	if template == "" {
		return withoutTemplate(cs), nil
	}
	image, problem := resolveTemplate(template, in.ServerVersion)
	if problem == "" && cs.Spec.Image != image {
		after := cs.DeepCopy()
		after.Spec.Image = image
		cause := olmcore.Cause{Reason: ReasonImageTemplateResolved, Message: "the image template gives another image"}
		return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateOf(cs, after, cause)}}, nil
	}
	status, reason := metav1.ConditionTrue, ReasonAllTemplatesResolved
	message := "catalog image reference was successfully resolved"
	if problem != "" {
		status, reason, message = metav1.ConditionFalse, ReasonUnableToResolve, problem
	}
	conditions := slices.Clone(cs.Status.Conditions)
	c := metav1.Condition{
		Type: ConditionTemplatesHaveResolved, Status: status, Reason: reason, Message: message,
		ObservedGeneration: cs.Generation, LastTransitionTime: olmcore.Timestamp(in.Now),
	}
	first := meta.SetStatusCondition(&conditions, c)
	c.Type, c.Message = ConditionResolvedImage, clip(image, 32768)
	if second := meta.SetStatusCondition(&conditions, c); !first && !second {
		return olmcore.Result{}, nil
	}
	r := olmcore.Result{Actions: []olmcore.Action{templateStatus(cs, conditions)}}
	if problem != "" {
		path := "metadata.annotations[" + annotationTemplate + "]"
		r.Diagnostics = []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, reason, olmcore.RefOf(cs), path, "%s", problem)}
	}
	return r, nil
}

func withoutTemplate(cs *v1alpha1.CatalogSource) olmcore.Result {
	kept := slices.Clone(cs.Status.Conditions)
	first, second := meta.RemoveStatusCondition(&kept, ConditionTemplatesHaveResolved), meta.RemoveStatusCondition(&kept, ConditionResolvedImage)
	if !first && !second {
		return olmcore.Result{}
	}
	return olmcore.Result{Actions: []olmcore.Action{templateStatus(cs, kept)}}
}

func templateStatus(cs *v1alpha1.CatalogSource, conditions []metav1.Condition) olmcore.Action {
	after := cs.DeepCopy()
	after.Status.Conditions = conditions
	return olmcore.UpdateStatusOf(cs, after, olmcore.Cause{Reason: ReasonStatusChanged, Message: "the recorded conditions are not those of the image template"})
}

// resolveTemplate returns what a template gives, with "missing" for what is not
// known, and why that cannot be used; empty when it can.
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

// imageReference is the grammar of image references: a name of at most 255
// characters, which may start with a host, then a tag and a digest.
var imageReference = regexp.MustCompile(`^((?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*(?::[0-9]+)?/|\[[a-fA-F0-9:]+\](?::[0-9]+)?/)?` +
	`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)` +
	`(?::\w[\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)

func isImageReference(image string) bool {
	match := imageReference.FindStringSubmatch(image)
	return match != nil && len(match[1]) <= 255
}
