// SPDX-License-Identifier: Apache-2.0

package step

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/internal/crd"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/installplan/internal/versions"
	"github.com/olmcore/olm/olmcore"
)

// desired is what the object of a target must hold.
type desired struct {
	object map[string]any
	// hash marks the content: a later round compares it instead of the object, which
	// the API server may have completed.
	hash   string
	owners []metav1.OwnerReference
	// uid is the incarnation of the ClusterServiceVersion that the owner labels name.
	uid string
}

// byContent is the rule of all kinds whose content is kept up to date.
func byContent(w *world, t *Target) Verdict {
	owners, unknown := ownersOf(w, t)
	if unknown != nil {
		return *unknown
	}
	want, err := desiredOf(w, t, owners)
	if err != nil {
		return unreadable(t, err)
	}
	if t.Observed == nil {
		metadata := metadataOf(want.object)
		annotations := manifest.Strings(metadata, "annotations")
		annotations[crd.StepHash] = want.hash
		metadata["annotations"] = annotations
		return createFrom(w, t, want.object)
	}
	if t.Observed.GetAnnotations()[crd.StepHash] == want.hash && (!versions.IsManaged(t.Observed) || want.isOwned(t.Observed)) {
		return Verdict{Outcome: Done}
	}
	return update(w, t, want)
}

// labelled returns what a target's object must hold but for owner references: the
// manifest and the labels that say whose it is.
func labelled(w *world, t *Target) map[string]any {
	object := withMetadata(t.desired.Object)
	metadata := metadataOf(object)
	delete(metadata, "ownerReferences")
	labels := manifest.Strings(metadata, "labels")
	labels[olmcore.LabelManaged] = "true"
	if t.Kind.Labelled && len(t.Versions) > 0 {
		owner := olmcore.Owner{Kind: kinds.CSV, Namespace: w.Plan.Namespace, Name: t.Versions[0]}
		if csv := w.known.Here[owner.Name]; csv != nil {
			owner.UID = csv.UID
		}
		for key, value := range owner.Labels() {
			labels[key] = value
		}
	}
	metadata["labels"] = labels
	if annotations := manifest.Strings(metadata, "annotations"); len(annotations) > 0 {
		metadata["annotations"] = annotations
	} else {
		delete(metadata, "annotations")
	}
	return object
}

func desiredOf(w *world, t *Target, owners []metav1.OwnerReference) (desired, error) {
	want := desired{object: labelled(w, t), owners: owners}
	labels, _ := metadataOf(want.object)["labels"].(map[string]any)
	want.uid, _ = labels[olmcore.LabelOwnerUID].(string)
	var err error
	if want.hash, err = hashOf(want.object); err != nil {
		return desired{}, err
	}
	if len(owners) > 0 {
		metadataOf(want.object)["ownerReferences"] = encodeOwners(owners)
	}
	return want, nil
}

// hashOf identifies the content of an object, whatever incarnation it belongs to.
func hashOf(object map[string]any) (string, error) {
	if labels := manifest.Strings(metadataOf(object), "labels"); labels[olmcore.LabelOwnerUID] != nil {
		delete(labels, olmcore.LabelOwnerUID)
		object = withMetadata(object)
		metadataOf(object)["labels"] = labels
	}
	return olmcore.HashCanonical(object)
}

// isOwned reports whether an object is that of the owners' present incarnations.
func (d desired) isOwned(o olmcore.Object) bool {
	return ownedByAll(o, d.owners) && o.GetLabels()[olmcore.LabelOwnerUID] == d.uid
}

// update makes an observed object what the step wants.
func update(w *world, t *Target, want desired) Verdict {
	managed := versions.IsManaged(t.Observed)
	have, err := olmcore.ToMap(t.Observed)
	if err != nil {
		return unreadable(t, err)
	}
	if t.Kind.Immutable != nil {
		if field := t.Kind.Immutable(have, want.object); field != "" {
			return replace(w, t, managed, field)
		}
	}
	switch {
	case !managed && !w.OverwriteUnmanaged && !t.Kind.Additive:
		return useUnmanaged(t, have, want.object)
	case taken(w, t, want, managed):
		return Verdict{Outcome: Done}.saying(crd.Shared(t.Key.String()))
	case altered(w, t):
		return Verdict{Outcome: Done}.saying(crd.Altered(t.Key.String()))
	}
	after, err := typed(t, merge(have, want.object, t.Kind, managed))
	if err != nil {
		return unreadable(t, err)
	}
	var said []report.Finding
	after.SetOwnerReferences(t.Observed.GetOwnerReferences())
	if managed {
		refs, _ := olmcore.AddOwnerReferences(t.Observed.GetOwnerReferences(), want.owners)
		after.SetOwnerReferences(refs)
	} else {
		said = append(said, report.Step(olmcore.Info, report.UnmanagedObjectUpdated, "%s was there before the operator and gets no owner", t.Key))
	}
	if same(t.Observed, after) {
		return Verdict{Outcome: Done}.saying(said...)
	}
	annotations, _ := olmcore.MergeLabels(after.GetAnnotations(), map[string]string{crd.StepHash: want.hash})
	after.SetAnnotations(annotations)
	return change(w, t, after).saying(said...)
}

// replace deletes an object that differs in a field that cannot change, to be created
// anew. One that is not the step's to delete refuses it.
func replace(w *world, t *Target, managed bool, field string) Verdict {
	if !managed || isOthers(w, t) {
		return blocked("%s %s%s%s%s", t.Key.Kind, t.Key.Name, immutableMiddle, field, immutableSuffix)
	}
	return Verdict{Status: v1alpha1.StepStatusUnknown, Action: olmcore.Delete{
		Target: olmcore.RefOf(t.Observed), As: w.identity(t.Kind),
		Cause: olmcore.Cause{Reason: report.StepImmutable, Message: field + " differs and cannot be changed"},
	}}
}

// taken reports that this plan wrote the object in the last round, and that another plan
// did so since then: two plans that describe one object would take it from each other for
// ever. What is read may be stale: that the write arrived is told by the owner that it
// added, which stays, or by owner labels that are not those of the predecessor.
func taken(w *world, t *Target, want desired, managed bool) bool {
	hash := t.Observed.GetAnnotations()[crd.StepHash]
	if !w.wrote(t.Key) || hash == want.hash {
		return false
	}
	if owner, owned := olmcore.OwnerOf(t.Observed.GetLabels()); owned && t.Kind.Labelled {
		return !w.known.Precedes(owner.Namespace, owner.Name, t.Versions)
	}
	return hash != "" && (!managed || ownedByAll(t.Observed, want.owners))
}

// altered reports that an Update of the object succeeded and its mark is missing. A step
// that is recorded as Unknown met an object that existed, so what succeeded was no Create.
func altered(w *world, t *Target) bool {
	return w.wrote(t.Key) && t.Recorded == v1alpha1.StepStatusUnknown && t.Observed.GetAnnotations()[crd.StepHash] == ""
}

// same compares an observed object with what would be written, leaving kind and version
// aside, which typed clients do not fill in.
func same(have, after olmcore.Object) bool {
	gvk := after.GetObjectKind().GroupVersionKind()
	after.GetObjectKind().SetGroupVersionKind(have.GetObjectKind().GroupVersionKind())
	equal := apiequality.Semantic.DeepEqual(have, after)
	after.GetObjectKind().SetGroupVersionKind(gvk)
	return equal
}

// change asks for the Update of the observed object.
func change(w *world, t *Target, after olmcore.Object) Verdict {
	action := olmcore.UpdateOf(t.Observed, after, olmcore.Cause{Reason: report.StepDiffers, Message: t.Key.Kind + " differs from the step"})
	action.As = w.identity(t.Kind)
	return Verdict{Status: v1alpha1.StepStatusUnknown, Action: action}
}

func createFrom(w *world, t *Target, object map[string]any) Verdict {
	o, err := typed(t, object)
	if err != nil {
		return unreadable(t, err)
	}
	return create(w, t, o)
}

// create asks for the Create of an object, which it writes to.
func create(w *world, t *Target, o olmcore.Object) Verdict {
	own := componentLabels(w, t, o)
	own[olmcore.LabelManaged] = "true"
	labels, _ := olmcore.MergeLabels(o.GetLabels(), own)
	o.SetLabels(labels)
	action := olmcore.CreateOf(o, olmcore.Cause{Reason: report.StepAbsent, Message: t.Key.Kind + " is absent"})
	action.As = w.identity(t.Kind)
	return Verdict{Asked: v1alpha1.StepStatusNotPresent, Action: action}
}

// componentLabels are those of the Subscriptions whose versions an object is made for,
// and on a Subscription its own package's. They go into the write that makes it, so that
// no other one has to bring them while package csv is at work on the same object; what
// exists already is package subscription's.
func componentLabels(w *world, t *Target, o olmcore.Object) map[string]string {
	var packages []string
	switch s := o.(type) {
	case *v1alpha1.Subscription:
		if s.Spec != nil {
			packages = []string{s.Spec.Package}
		}
	case *v1alpha1.ClusterServiceVersion:
		packages = w.packages[t.Key.Name]
	default:
		for _, version := range t.Versions {
			packages = append(packages, w.packages[version]...)
		}
	}
	labels := map[string]string{}
	for _, pkg := range packages {
		if key, err := olmcore.ComponentLabelKey(pkg, w.Plan.Namespace); err == nil && pkg != "" {
			labels[key] = ""
		}
	}
	return labels
}

// packagesOf returns the packages of versions: those of the Subscriptions that want them,
// and of the Subscriptions that the plan makes for them.
func packagesOf(in Input) map[string][]string {
	packages := map[string][]string{}
	for _, s := range in.Subscriptions {
		if s.Spec != nil && s.Status.CurrentCSV != "" {
			packages[s.Status.CurrentCSV] = append(packages[s.Status.CurrentCSV], s.Spec.Package)
		}
	}
	for _, s := range in.Plan.Status.Plan {
		if s == nil || s.Resource.Kind != kinds.Subscription || s.Resolving == "" {
			continue
		}
		if m, err := manifest.Parse(s.Resource.Manifest); err == nil {
			spec, _ := m.Object["spec"].(map[string]any)
			pkg, _ := spec["name"].(string)
			packages[s.Resolving] = append(packages[s.Resolving], pkg)
		}
	}
	return packages
}
