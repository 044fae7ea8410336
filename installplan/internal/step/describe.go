// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/reasons"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// fromStatus returns the Decision of a step from its recorded status and the presence of its object. answered is false
// if the manifest has to be read.
func fromStatus(w *world, s *v1alpha1.Step) (v Decision, answered bool) {
	if s == nil {
		return invalid(InvalidPlan), true
	}
	keep := Decision{Outcome: Done, Status: s.Status}
	if s.Resource.Kind == "" || s.Resource.Name == "" {
		return Decision{Outcome: Invalid, Message: InvalidPlan, Status: s.Status}, true
	}
	if w.in.TakenOver[s.Resolving] {
		if !olmcore.IsStepDone(s) {
			keep.Status = v1alpha1.StepStatusNotCreated
		}
		return keep, true
	}
	switch s.Status {
	case v1alpha1.StepStatusUnknown, v1alpha1.StepStatusNotPresent, v1alpha1.StepStatusWaitingForAPI:
		return Decision{}, false
	case v1alpha1.StepStatusCreated, v1alpha1.StepStatusPresent:
	case v1alpha1.StepStatusNotCreated:
		return keep, true
	case v1alpha1.StepStatusUnsupportedResource:
		return Decision{Outcome: Invalid, Message: unsupported(s), Status: s.Status}, true
	default:
		return Decision{Outcome: Invalid, Message: InvalidPlan, Status: s.Status}, true
	}
	return w.fromObject(s, keep)
}

// fromObject returns the Decision of a step that was applied, if the presence of its object decides. keep is the Decision
// if nothing changed. answered is false if the manifest has to be read.
func (w *world) fromObject(s *v1alpha1.Step, keep Decision) (v Decision, answered bool) {
	key, served := kinds.KeyOf(s, w.in.Plan.Namespace, w.in.CustomResourceDefinitions)
	o := w.objects[key]
	csv, isCSV := o.(*v1alpha1.ClusterServiceVersion)
	if !served || o == nil || isCSV && csv.IsCopied() {
		return Decision{}, false
	}
	switch {
	case o.GetDeletionTimestamp() != nil:
		keep.Outcome, keep.Message = Waiting, finishDeleting(key)
	case w.namesOldVersion(o, s):
		return Decision{}, false
	}
	return keep, true
}

// finishDeleting returns the message about an object that is being deleted.
func finishDeleting(key olmcore.Key) string {
	return fmt.Sprintf("waiting for %s %s to finish deleting", key.Kind, key.Name)
}

// namesOldVersion reports whether the object of a step does not name the ClusterServiceVersion of the step as its
// owner, although that version exists. This happens if a user deletes the version while the plan is running: the plan
// creates it again with another UID. The version does not accept an object of another owner, and garbage collection
// would delete the object.
func (w *world) namesOldVersion(o olmcore.Object, s *v1alpha1.Step) bool {
	version, kind := w.here(s.Resolving), kinds.Known[s.Resource.Kind]
	if version == nil || version.DeletionTimestamp != nil || !isManaged(o) {
		return false
	}
	uid := o.GetLabels()[olmcore.LabelOwnerUID]
	return kind.Owned && !olmcore.OwnedBy(o, version.UID) || kind.Labelled && uid != "" && uid != string(version.UID)
}

// unsupported returns the message about a step of a kind that plans do not install. It begins with the message of OLM,
// which names no object.
func unsupported(s *v1alpha1.Step) string {
	return fmt.Sprintf("%s: %s %s is of a kind that bundles may not contain", InvalidPlan, s.Resource.Kind, s.Resource.Name)
}

// describe returns the object that the step at an index describes. The Decision contains diagnostics about the step. If
// the target is nil, the Decision explains why the step describes no object.
func describe(w *world, i int, s *v1alpha1.Step) (*Target, Decision) {
	t := &Target{Steps: []int{i}, Recorded: s.Status, rule: ruleOf(s.Resource.Kind)}
	if s.Resolving != "" {
		t.Versions = []string{s.Resolving}
	}
	kind, known := kinds.Known[s.Resource.Kind]
	if s.Resource.Kind == kinds.PullSecret {
		t.Kind, t.Key = kind, olmcore.Key{Kind: "Secret", Namespace: w.in.Plan.Namespace, Name: s.Resource.Name}
		return t, Decision{}
	}
	m, v := read(w, s)
	if v.Refused() {
		return nil, v
	}
	var said []olmcore.Diagnostic
	if m.Extra {
		said = append(said, w.about(i, olmcore.Warning, reasons.ExtraDocumentsIgnored, "the manifest of %s contains more than one document", s.Resource.Name))
	}
	if m.GVK.Kind == "" {
		m.GVK = kinds.GVKOf(s)
	}
	if known {
		v = checkKind(s, kind, m.GVK)
		m.GVK = kind.GVK
	} else {
		kind, v = genericKind(w, s, m.GVK)
	}
	if v.Outcome != Pending {
		return nil, v.with(said...)
	}
	var keys []decode.KeyCase
	m.Object, keys = decode.FoldKeys(m.Object, olmcore.NewObject(m.GVK))
	for _, key := range keys {
		said = append(said, w.about(i, olmcore.Warning, reasons.KeyCase, "the manifest of %s: %s", s.Resource.Name, key))
	}
	if m.Name == "" {
		return nil, blocked("object of step %s has no name", s.Resource.Name).with(said...)
	}
	if m.Name != s.Resource.Name {
		said = append(said, w.about(i, olmcore.Warning, reasons.StepNameDiffers, "the step names %s, its manifest %s", s.Resource.Name, m.Name))
	}
	if kind.Labelled && len(validation.IsValidLabelValue(s.Resolving)) > 0 {
		return nil, invalid("%s %s: label %s=%q is not valid", kind.GVK.Kind, m.Name, olmcore.LabelOwner, s.Resolving).with(said...)
	}
	t.Kind, t.desired = kind, m
	t.place(w.in.Plan.Namespace)
	return t, Decision{Diagnostics: said}
}

// place sets the kind and namespace of the desired object. A namespace in the manifest is ignored.
func (t *Target) place(namespace string) {
	t.Key = olmcore.Key{Group: t.desired.GVK.Group, Kind: t.desired.GVK.Kind, Name: t.desired.Name}
	t.desired.Object["apiVersion"], t.desired.Object["kind"] = t.desired.GVK.ToAPIVersionAndKind()
	delete(t.desired.Metadata(), "namespace")
	if t.Kind.Namespaced {
		t.Key.Namespace = namespace
		t.desired.Metadata()["namespace"] = namespace
	}
}

// read returns the manifest of a step. If the manifest references an unpacked bundle, read returns that of the object
// in the bundle. The Decision is set if there is no manifest.
func read(w *world, s *v1alpha1.Step) (m bundle.Manifest, v Decision) {
	text := s.Resource.Manifest
	if ref, ok := bundle.ParseReference(text); ok {
		if text, v = w.literals[ref].find(s); v.Refused() {
			return m, v
		}
	}
	m, err := bundle.ParseManifest(text)
	switch {
	case err == nil:
		return m, Decision{}
	case kinds.IsGeneric(s):
		v = invalid("error decoding %s object to an unstructured object: %s", s.Resource.Name, err)
	default:
		v = unreadable(s.Resource.Kind, s.Resource.Name, err)
	}
	if errors.Is(err, bundle.ErrEmpty) {
		v.Outcome = Blocked
	}
	return m, v
}

// unreadable returns the Decision about a manifest that cannot be decoded as its kind.
func unreadable(kind, name string, err error) Decision {
	if kind == kinds.CRD {
		return invalid("v1 crd unmarshaling failed: %s", err)
	}
	return invalid("error parsing step manifest: %s: %s", name, err)
}

// checkKind refuses a manifest of another kind than that of its step. A manifest without a group has the group of its
// step.
func checkKind(s *v1alpha1.Step, k kinds.Kind, gvk schema.GroupVersionKind) Decision {
	if gvk.Group == "" && gvk.Kind == k.GVK.Kind {
		gvk.Group = k.GVK.Group
	}
	switch {
	case gvk.GroupKind() != k.GVK.GroupKind():
		return invalid("error parsing step manifest: %s: kind is %s", s.Resource.Name, gvk.GroupKind())
	case gvk.Kind == kinds.CRD && gvk.Version == "v1beta1":
		return notServed(s, gvk)
	case gvk.Kind == kinds.CRD && gvk.Version != k.GVK.Version:
		return invalid("CRD APIVersion from manifest not supported: %s", gvk.GroupVersion())
	}
	return Decision{}
}

// genericKind returns the row for a kind that is not in kinds.Known. The Decision is Pending if the kind can be applied
// now.
func genericKind(w *world, s *v1alpha1.Step, gvk schema.GroupVersionKind) (k kinds.Kind, v Decision) {
	if !kinds.IsSupported(w.in.SupportedKinds, s.Resource.Kind) {
		return k, Decision{Outcome: Invalid, NotServed: true, Status: v1alpha1.StepStatusUnsupportedResource, Message: unsupported(s)}
	}
	if gvk.Kind != s.Resource.Kind {
		return k, invalid("error parsing step manifest: %s: kind is %s", s.Resource.Name, gvk.GroupKind())
	}
	api := kinds.LookUp(gvk, w.in.CustomResourceDefinitions)
	if api.Kind {
		return genericRow(gvk, api.Namespaced), Decision{}
	}
	if name := w.defining[gvk.GroupKind()]; name != "" {
		v = waiting("waiting for CustomResourceDefinition %s to be established", name)
		v.Follows = true
		return k, v
	}
	v = notServed(s, gvk)
	if api.Version {
		v.Message = fmt.Sprintf("Unable to find GVK in discovery: %s %s %s", gvk.Group, gvk.Version, gvk.Kind)
	}
	return k, v
}

// genericRow returns the row for a kind that is not in kinds.Known.
func genericRow(gvk schema.GroupVersionKind, namespaced bool) kinds.Kind {
	return kinds.Kind{
		GVK: gvk, Namespaced: namespaced, Owned: namespaced, Labelled: !namespaced,
		Immutable: kinds.Supported[gvk.Kind].Immutable, Word: "unstructured object:",
		FailedCreate: "error creating unstructured object %s: %s", FailedUpdate: "error updating unstructured object %s: %s",
	}
}

// notServed returns the Decision about a step whose API is not served.
func notServed(s *v1alpha1.Step, gvk schema.GroupVersionKind) Decision {
	v := blocked("api-server resource not found installing %s %s: GroupVersionKind %s not found on the cluster. "+
		"This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.",
		s.Resource.Kind, s.Resource.Name, gvk)
	v.NotServed = true
	return v
}

// find returns the manifest of a step in the unpacked bundle that the step references.
func (l literal) find(s *v1alpha1.Step) (text string, v Decision) {
	if l.problem != "" {
		return "", blocked("%s", l.problem)
	}
	for _, own := range l.steps {
		a, b := own.Resource, s.Resource
		if a.Name == b.Name && a.Kind == b.Kind && a.Version == b.Version && a.Group == b.Group {
			return a.Manifest, Decision{}
		}
	}
	return "", blocked("couldn't find unpacked step for %v", *s)
}
