// SPDX-License-Identifier: Apache-2.0

package step

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/reasons"
	"github.com/olmcore/olm/internal/ownerrefs"
	"github.com/olmcore/olm/olmcore"
)

// byContent is the rule of all kinds whose content is kept up to date.
func byContent(w *world, t *Target) Decision {
	owners, unknown := ownersOf(w, t)
	if unknown != nil {
		return *unknown
	}
	want := labelled(w, t)
	hash, err := hashOf(want)
	if err != nil {
		return unreadable(t.Key.Kind, t.Key.Name, err)
	}
	if t.Observed == nil {
		o, err := typed(t, want)
		if err != nil {
			return unreadable(t.Key.Kind, t.Key.Name, err)
		}
		o.SetOwnerReferences(owners)
		recorded, _ := recordCoOwners(w, t, o, true)
		annotations, _ := olmcore.MergeMaps(recorded, map[string]string{hashKey: hash})
		o.SetAnnotations(annotations)
		return create(w, t, o)
	}
	if t.Observed.GetAnnotations()[hashKey] == hash {
		// The hash does not contain the UIDs of the owners.
		uid, _ := bundle.Fields(bundle.Fields(want, "metadata"), "labels")[olmcore.LabelOwnerUID].(string)
		_, unrecorded := recordCoOwners(w, t, t.Observed, true)
		if !isManaged(t.Observed) || ownedByAll(t.Observed, owners) && t.Observed.GetLabels()[olmcore.LabelOwnerUID] == uid && !unrecorded {
			return Decision{Outcome: Done}
		}
	}
	return update(w, t, want, hash, owners)
}

// recordCoOwners returns the annotations of an object with the co-owners that it should record, and reports whether
// they differ from the present ones. If owning is set, the owner labels name the first version of the target. Otherwise
// the owner labels stay as they are. The other versions of the target become co-owners, and so does the former owner of
// an observed object. A predecessor of a version of the target is not a co-owner any more.
func recordCoOwners(w *world, t *Target, o olmcore.Object, owning bool) (annotations map[string]string, changed bool) {
	before := o.GetAnnotations()
	if !t.Kind.Labelled || len(t.Versions) == 0 {
		return before, false
	}
	own := t.Versions
	if owning {
		own = own[1:]
	}
	var owners []olmcore.Owner
	for _, name := range own {
		owners = append(owners, w.ownerOf(name))
	}
	others := olmcore.CoOwners(before)
	owner, labelled := olmcore.OwnerOf(o.GetLabels())
	if owning && labelled && owner.Kind == kinds.CSV {
		others = append([]olmcore.Owner{owner}, others...)
	}
	for _, owner := range others {
		isSame := func(have olmcore.Owner) bool { return have.Namespace == owner.Namespace && have.Name == owner.Name }
		isOwn := owner.Namespace == w.in.Plan.Namespace && slices.Contains(t.Versions, owner.Name)
		if !isOwn && !w.precedes(owner.Namespace, owner.Name, t.Versions) && !slices.ContainsFunc(owners, isSame) {
			owners = append(owners, owner)
		}
	}
	annotations = olmcore.SetCoOwners(before, owners)
	return annotations, !maps.Equal(before, annotations)
}

// ownerOf returns the owner that labels and annotations name for a version of the plan's namespace.
func (w *world) ownerOf(name string) olmcore.Owner {
	owner := olmcore.Owner{Kind: kinds.CSV, Namespace: w.in.Plan.Namespace, Name: name}
	if csv := w.here(name); csv != nil {
		owner.UID = csv.UID
	}
	return owner
}

// labelled returns the desired object of a target without owner references: the manifest, with the owner labels.
func labelled(w *world, t *Target) map[string]any {
	object := withMetadata(t.desired.Object)
	metadata := bundle.Fields(object, "metadata")
	delete(metadata, "ownerReferences")
	labels := bundle.Strings(metadata, "labels")
	labels[olmcore.LabelManaged] = "true"
	if t.Kind.Labelled && len(t.Versions) > 0 {
		owner := olmcore.Owner{Kind: kinds.CSV, Namespace: w.in.Plan.Namespace, Name: t.Versions[0]}
		if csv := w.here(owner.Name); csv != nil {
			owner.UID = csv.UID
		}
		for key, value := range owner.Labels() {
			labels[key] = value
		}
	}
	metadata["labels"] = labels
	annotations := bundle.Strings(metadata, "annotations")
	// A bundle cannot record co-owners of its objects.
	maps.DeleteFunc(annotations, func(key string, _ any) bool { return strings.HasPrefix(key, olmcore.AnnotationCoOwnerPrefix) })
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	} else {
		delete(metadata, "annotations")
	}
	return object
}

// update returns the Decision about an object that exists and differs from the step.
func update(w *world, t *Target, want map[string]any, hash string, owners []metav1.OwnerReference) Decision {
	managed := isManaged(t.Observed)
	have, err := olmcore.ToMap(t.Observed)
	if err != nil {
		return unreadable(t.Key.Kind, t.Key.Name, err)
	}
	if t.Kind.Immutable != nil {
		if field := t.Kind.Immutable(have, want); field != "" {
			return replace(w, t, managed, field)
		}
	}
	switch {
	case !managed && !w.in.OverwriteUnmanaged && !t.Kind.Additive:
		return useUnmanaged(t, have, want)
	case taken(w, t, hash, owners, managed):
		return leaveShared(w, t)
	case altered(w, t):
		return Decision{Outcome: Done}.with(reportAltered(w, t))
	}
	after, err := typed(t, merge(have, want, t.Kind, managed))
	if err != nil {
		return unreadable(t.Key.Kind, t.Key.Name, err)
	}
	var said []olmcore.Diagnostic
	refs := t.Observed.GetOwnerReferences()
	if managed {
		refs, _ = ownerrefs.Add(refs, owners)
	} else {
		said = append(said, w.about(t.Steps[0], olmcore.Info, reasons.UnmanagedObjectUpdated,
			"%s existed before the operator was installed and gets no owner", t.Key))
	}
	after.SetOwnerReferences(refs)
	recorded, changed := recordCoOwners(w, t, t.Observed, true)
	if managed && changed {
		after.SetAnnotations(olmcore.SetCoOwners(after.GetAnnotations(), olmcore.CoOwners(recorded)))
	}
	if same(t.Observed, after) {
		return Decision{Outcome: Done}.with(said...)
	}
	annotations, _ := olmcore.MergeMaps(after.GetAnnotations(), map[string]string{hashKey: hash})
	after.SetAnnotations(annotations)
	return change(w, t, after).with(said...)
}

// replace deletes an object that differs in an immutable field. A later call creates it again. If the object is
// unmanaged or belongs to another operator, the step is Blocked.
func replace(w *world, t *Target, managed bool, field string) Decision {
	if !managed || isOthers(w, t) {
		return blocked("%s %s exists and its %s is immutable", t.Key.Kind, t.Key.Name, field)
	}
	remove := olmcore.DeleteOf(t.Observed, olmcore.Cause{Reason: reasons.StepImmutable, Message: field + " differs and cannot be changed"})
	remove.As = w.identity(t.Kind)
	return Decision{Status: v1alpha1.StepStatusUnknown, Action: remove}
}

// taken reports whether this plan wrote the object in the last run and another plan has written it since. Two plans
// that describe the same object would otherwise overwrite each other without end. The observed object may be stale. It
// shows the write of this plan if it has the owners that the write added, or if its owner labels do not name the
// predecessor.
func taken(w *world, t *Target, want string, owners []metav1.OwnerReference, managed bool) bool {
	hash := t.Observed.GetAnnotations()[hashKey]
	if !w.wrote(t.Key) || hash == want {
		return false
	}
	owner, owned := olmcore.OwnerOf(t.Observed.GetLabels())
	if owned && t.Kind.Labelled {
		return !w.precedes(owner.Namespace, owner.Name, t.Versions)
	}
	return hash != "" && (!managed || ownedByAll(t.Observed, owners))
}

// leaveShared leaves an object as another plan wrote it, and records the versions of this plan as co-owners.
func leaveShared(w *world, t *Target) Decision {
	annotations, isChanged := recordCoOwners(w, t, t.Observed, false)
	if !isChanged {
		return Decision{Outcome: Done}.with(reportShared(w, t))
	}
	after := t.Observed.DeepCopyObject().(olmcore.Object)
	after.SetAnnotations(annotations)
	return change(w, t, after)
}

// reportShared reports that another plan wrote the object last.
func reportShared(w *world, t *Target) olmcore.Diagnostic {
	return w.about(t.Steps[0], olmcore.Warning, reasons.SharedObject, "%s is in another InstallPlan too, which wrote it last", t.Key)
}

// altered reports whether an update of the object succeeded but its hash is missing, so something changes what is
// stored. A step whose status is Unknown did not create its object, so the write was an update.
func altered(w *world, t *Target) bool {
	return w.wrote(t.Key) && t.Recorded == v1alpha1.StepStatusUnknown && t.Observed.GetAnnotations()[hashKey] == ""
}

// wrote reports whether the last write of an object succeeded.
func (w *world) wrote(key olmcore.Key) bool {
	last, ran := w.in.LastRun[key]
	return ran && last.Class == olmcore.ClassNone
}

// reportAltered reports that the API server stored other content than was written.
func reportAltered(w *world, t *Target) olmcore.Diagnostic {
	return w.about(t.Steps[0], olmcore.Info, reasons.AppliedContentAltered, "%s was stored with other content than was written", t.Key)
}

// same reports whether an observed object equals the object to write. It ignores kind and apiVersion, which typed
// clients leave empty.
func same(have, after olmcore.Object) bool {
	gvk := after.GetObjectKind().GroupVersionKind()
	after.GetObjectKind().SetGroupVersionKind(have.GetObjectKind().GroupVersionKind())
	equal := apiequality.Semantic.DeepEqual(have, after)
	after.GetObjectKind().SetGroupVersionKind(gvk)
	return equal
}

// change returns a Decision with the update of the observed object.
func change(w *world, t *Target, after olmcore.Object) Decision {
	action := olmcore.UpdateOf(t.Observed, after, olmcore.Cause{Reason: reasons.StepDiffers, Message: t.Key.Kind + " differs from the step"})
	action.As = w.identity(t.Kind)
	return Decision{Status: v1alpha1.StepStatusUnknown, Action: action}
}

// create returns a Decision that creates an object, which it changes. The object gets the component labels of the
// Subscriptions whose versions need it. A new Subscription gets the label of its own package. The labels are part of
// this write, so that no second write conflicts with package csv. Package subscription labels objects that exist
// already.
func create(w *world, t *Target, o olmcore.Object) Decision {
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
	own := map[string]string{olmcore.LabelManaged: "true"}
	for _, pkg := range packages {
		key, err := olmcore.ComponentLabelKey(pkg, w.in.Plan.Namespace)
		if err == nil && pkg != "" {
			own[key] = ""
		}
	}
	labels, _ := olmcore.MergeMaps(o.GetLabels(), own)
	o.SetLabels(labels)
	return creating(w, t, o)
}

// creating returns a Decision that creates an object without further changes.
func creating(w *world, t *Target, o olmcore.Object) Decision {
	action := olmcore.CreateOf(o, olmcore.Cause{Reason: reasons.StepAbsent, Message: t.Key.Kind + " is absent"})
	action.As = w.identity(t.Kind)
	return Decision{Action: action}
}

// identity returns the ServiceAccount that writes objects of a kind, or nil for the controller.
func (w *world) identity(k kinds.Kind) *corev1.ObjectReference {
	if k.ByController {
		return nil
	}
	return w.in.Plan.Status.AttenuatedServiceAccountRef
}

// ownersOf returns the owner references that a target must have. The Decision is set if they are not known yet.
func ownersOf(w *world, t *Target) (owners []metav1.OwnerReference, unknown *Decision) {
	refs := Owners(t.desired)
	if t.Kind.Owned {
		for _, name := range t.Versions {
			refs = addReference(refs, versionReference(name))
		}
	}
	follows := t.Kind.Labelled && slices.ContainsFunc(t.Versions, w.isToBeMade)
	for _, r := range refs {
		csv := w.here(r.Name)
		switch {
		case w.isToBeMade(r.Name):
			follows = true
			continue
		case csv == nil || csv.UID == "":
			v := blocked(
				"error generating ownerrefs for %s %s: clusterserviceversions.operators.coreos.com %q not found",
				t.Kind.Word,
				t.Key.Name,
				r.Name,
			)
			return nil, &v
		case csv.DeletionTimestamp != nil:
			v := waiting("waiting for ClusterServiceVersion %s", r.Name)
			return nil, &v
		}
		r.UID = csv.UID
		owners = append(owners, r)
	}
	if follows {
		return nil, &Decision{}
	}
	return owners, nil
}

// isToBeMade reports whether the plan still has to create a ClusterServiceVersion.
func (w *world) isToBeMade(name string) bool {
	csv := w.here(name)
	return w.planned[name] && (csv == nil || csv.UID == "")
}

// versionReference returns an owner reference to a ClusterServiceVersion, without its UID.
func versionReference(name string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: kinds.CSV, Name: name,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

// Owners returns the owner references to ClusterServiceVersions in a manifest, without UIDs. If several references have
// the same name, Owners returns only the first. Other owner references are omitted, because their UIDs belong to
// another cluster. With such a UID, the garbage collector would delete the object.
func Owners(m bundle.Manifest) (refs []metav1.OwnerReference) {
	list, _ := m.Metadata()["ownerReferences"].([]any)
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		text := func(key string) string { s, _ := fields[key].(string); return s }
		flag := func(key string) *bool {
			if b, ok := fields[key].(bool); ok {
				return &b
			}
			return nil
		}
		r := metav1.OwnerReference{
			APIVersion: text("apiVersion"), Kind: text("kind"), Name: text("name"),
			Controller: flag("controller"), BlockOwnerDeletion: flag("blockOwnerDeletion"),
		}
		if kinds.IsVersionReference(r) && r.Name != "" {
			refs = addReference(refs, r)
		}
	}
	return refs
}

// addReference adds an owner reference if there is none with its name.
func addReference(refs []metav1.OwnerReference, r metav1.OwnerReference) []metav1.OwnerReference {
	if slices.ContainsFunc(refs, func(have metav1.OwnerReference) bool { return have.Name == r.Name }) {
		return refs
	}
	return append(refs, r)
}

// ownedByAll reports whether an object has all owner references.
func ownedByAll(o olmcore.Object, owners []metav1.OwnerReference) bool {
	return !slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return !olmcore.OwnedBy(o, r.UID) })
}

// isOthers reports whether the observed object belongs to a ClusterServiceVersion that is neither of the step nor a
// predecessor of it. Deleting the object would harm that operator.
func isOthers(w *world, t *Target) bool {
	theirs := func(namespace, name string) bool {
		own := namespace == w.in.Plan.Namespace && slices.Contains(t.Versions, name)
		return !own && !w.precedes(namespace, name, t.Versions)
	}
	owner, owned := olmcore.OwnerOf(t.Observed.GetLabels())
	if owned && t.Kind.Labelled {
		return theirs(owner.Namespace, owner.Name)
	}
	return slices.ContainsFunc(t.Observed.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return kinds.IsVersionReference(r) && theirs(w.in.Plan.Namespace, r.Name)
	})
}

// withMetadata returns a copy of an object with a copy of its metadata. All other fields are shared.
func withMetadata(object map[string]any) map[string]any {
	object = maps.Clone(object)
	object["metadata"] = maps.Clone(bundle.Fields(object, "metadata"))
	return object
}

// owning contains the labels that mark an object as managed by OLM.
var owning = []string{olmcore.LabelManaged, olmcore.LabelOwner, olmcore.LabelOwnerNamespace, olmcore.LabelOwnerKind, olmcore.LabelOwnerUID}

// merge returns have with the content of want. Labels and annotations are added or overwritten. Other metadata and the
// status stay those of have. Everything else becomes that of want, except for fields that the kind keeps. Neither
// argument is changed. An unmanaged object gets no label that marks it as managed. An unmanaged ServiceAccount keeps
// its own metadata, because annotations of a ServiceAccount may grant permissions in clouds.
func merge(have, want map[string]any, kind kinds.Kind, managed bool) map[string]any {
	out := runtime.DeepCopyJSON(have)
	want = runtime.DeepCopyJSON(want)
	mergeMetadata(out, want, kind, managed)
	if kind.Keep != nil {
		want = kind.Keep(have, want, managed)
	}
	for key := range out {
		if want[key] == nil && !isFrame(key) {
			delete(out, key) // typed objects encode an empty list as null
		}
	}
	for key, value := range want {
		if !isFrame(key) && value != nil {
			out[key] = value
		}
	}
	return out
}

// mergeMetadata adds the labels and annotations of want to out, which it changes.
func mergeMetadata(out, want map[string]any, kind kinds.Kind, managed bool) {
	for _, field := range [...]string{"labels", "annotations"} {
		merged := bundle.Strings(bundle.Fields(out, "metadata"), field)
		for key, value := range bundle.Strings(bundle.Fields(want, "metadata"), field) {
			_, exists := merged[key]
			isKept := exists && kind.Additive || field == "labels" && slices.Contains(owning, key)
			if managed || !isKept {
				merged[key] = value
			}
		}
		if len(merged) > 0 {
			bundle.Fields(out, "metadata")[field] = merged
		}
	}
}

// isFrame reports whether a field exists in objects of every kind.
func isFrame(key string) bool {
	return key == "apiVersion" || key == "kind" || key == "metadata" || key == "status"
}

// useUnmanaged decides about an unmanaged object. If it contains everything that the step describes, it is used
// unchanged. Otherwise the step is Blocked.
func useUnmanaged(t *Target, have, want map[string]any) Decision {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !isFrame(key) && !holds(have[key], want[key]) {
			return unmanaged(t, key)
		}
	}
	return Decision{Outcome: Done}
}

// holds reports whether an observed value contains the desired one. The API server or a user may have added fields, but
// not entries of lists.
func holds(have, want any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case map[string]any:
		fields, ok := have.(map[string]any)
		return (ok || len(want) == 0) && holdsFields(fields, want)
	case []any:
		list, ok := have.([]any)
		return (ok || len(want) == 0) && slices.EqualFunc(list, want, holds)
	}
	return reflect.DeepEqual(have, want) || have == nil && reflect.ValueOf(want).IsZero()
}

// holdsFields reports whether observed fields contain everything that is wanted. A Service that was encoded from its
// type contains 0 for a target port that it leaves open.
func holdsFields(have, want map[string]any) bool {
	for key, value := range want {
		isOpenPort := key == "targetPort" && (value == int64(0) || value == "")
		if !isOpenPort && !holds(have[key], value) {
			return false
		}
	}
	return true
}
