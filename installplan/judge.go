// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// judge decides about one object: it is as it should be, it must wait, it is
// refused, or an action is put on the target.
func (e *evaluation) judge(t *target) verdict {
	if t.observed != nil && t.observed.GetDeletionTimestamp() != nil {
		return verdict{outcome: waiting, message: finishDeleting(t.key)}
	}
	if csv := e.csvs.find(t.resolving); t.kind.labelled && csv != nil && csv.DeletionTimestamp != nil {
		// Its clean-up deletes what carries its labels; creating it would fight that.
		return verdict{outcome: waiting, message: finishDeleting(olmcore.KeyOf(csv))}
	}
	switch t.kind.gvk.Kind {
	case kindCSV:
		return e.judgeCSV(t)
	case kindCRD:
		return e.judgeCRD(t)
	case kindSubscription:
		return e.judgeSubscription(t)
	case "Secret":
		if t.kind.createOnly {
			return e.judgePullSecret(t)
		}
	case "ServiceAccount":
		if t.key.Name == "default" {
			if t.observed != nil {
				return verdict{outcome: done}
			}
			return verdict{outcome: waiting, message: "waiting for ServiceAccount default"}
		}
	}
	return e.judgeObject(t)
}

func (e *evaluation) judgeCSV(t *target) verdict {
	if v := e.checkOwnedCRDs(t); v.refused() {
		return v
	}
	if t.observed == nil {
		return e.create(t, t.desired.object)
	}
	have := t.observed.(*v1alpha1.ClusterServiceVersion)
	if copied(have) {
		from := or(have.Labels[olmcore.LabelCopiedFrom], have.Annotations["olm.operatorNamespace"])
		return verdict{outcome: blocked, message: fmt.Sprintf(
			"a copy of ClusterServiceVersion %s from namespace %s exists here", have.Name, from)}
	}
	if want, err := e.typed(t, t.desired.object); err != nil {
		return unreadable(t, err)
	} else if csv := want.(*v1alpha1.ClusterServiceVersion); e.plan.Status.Plan[t.steps[0]].Status == v1alpha1.StepStatusUnknown &&
		!apiequality.Semantic.DeepEqual(csv.Spec, have.Spec) {
		e.d.diagnose(olmcore.Info, ReasonCSVContentDiffers, stepPath(t.steps[0]), "ClusterServiceVersion %s exists with another spec", have.Name)
	}
	return verdict{outcome: done}
}

func (e *evaluation) judgeSubscription(t *target) verdict {
	if t.observed != nil {
		return verdict{outcome: done}
	}
	annotations := stringsOf(t.desired.metadata(), "annotations")
	annotations[AnnotationGeneratedBy] = e.plan.Name
	t.desired.metadata()["annotations"] = annotations
	return e.create(t, t.desired.object)
}

func (e *evaluation) judgePullSecret(t *target) verdict {
	if t.observed != nil {
		return verdict{outcome: done}
	}
	from := or(e.d.in.Config.OLMNamespace, DefaultOLMNamespace)
	for _, s := range e.d.in.PullSecrets {
		if s == nil || s.Name != t.key.Name || s.Namespace != from {
			continue
		}
		if !e.isPullSecret(s) {
			return verdict{outcome: blocked, message: fmt.Sprintf("secret %s is no pull secret that a catalog of namespace %s lists", s.Name, from)}
		}
		t.action = olmcore.Create{
			Target: refOf(t), As: e.identity(t.kind), Cause: olmcore.Cause{Reason: ReasonStepAbsent, Message: "Secret is absent"},
			Object: (&corev1.Secret{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: metav1.ObjectMeta{
					Name: t.key.Name, Namespace: t.key.Namespace, Labels: map[string]string{olmcore.LabelManaged: "true"},
				},
				Data: s.Data, Type: s.Type,
			}).DeepCopy(),
		}
		return verdict{asked: v1alpha1.StepStatusNotPresent}
	}
	return verdict{outcome: blocked, message: fmt.Sprintf("secret %s does not exist - secrets %q not found", t.key.Name, t.key.Name)}
}

// isPullSecret reports whether a Secret may be copied to any namespace that asks:
// it holds registry credentials, and a catalog that all namespaces see needs it.
func (e *evaluation) isPullSecret(s *corev1.Secret) bool {
	if e.d.in.Config.CopyAnySecret {
		return true
	}
	return (s.Type == corev1.SecretTypeDockerConfigJson || s.Type == corev1.SecretTypeDockercfg) &&
		slices.ContainsFunc(e.d.in.CatalogSources, func(c *v1alpha1.CatalogSource) bool {
			return c != nil && c.Namespace == s.Namespace && c.DeletionTimestamp == nil && slices.Contains(c.Spec.Secrets, s.Name)
		})
}

// judgeObject is the rule of all kinds whose content is kept up to date.
func (e *evaluation) judgeObject(t *target) verdict {
	owners, v := e.owners(t)
	if v.refused() || v.outcome == waiting || e.barred(t) {
		return v
	}
	want := e.complete(t)
	hash, err := stepHash(want)
	if err != nil {
		return unreadable(t, err)
	}
	setOwners(want, owners)
	if t.observed == nil {
		stamp(want, e.d.in.Config.stepHashKey(), hash)
		return e.create(t, want)
	}
	managed := isManaged(t.observed)
	if t.observed.GetAnnotations()[e.d.in.Config.stepHashKey()] == hash && (!managed || ownedByAll(t.observed, owners) && t.observed.GetLabels()[olmcore.LabelOwnerUID] == ownerUID(want)) {
		return verdict{outcome: done}
	}
	return e.update(t, want, hash, owners, managed)
}

// update makes an observed object what the step wants.
func (e *evaluation) update(t *target, want map[string]any, hash string, owners []metav1.OwnerReference, managed bool) verdict {
	have, err := valuesOf(t.observed)
	if err != nil {
		return unreadable(t, err)
	}
	if field := immutableChange(t.kind.gvk.Kind, have, want); field != "" {
		if !managed || e.foreign(t) {
			return verdict{outcome: blocked, message: fmt.Sprintf("%s %s%s%s is immutable", t.key.Kind, t.key.Name, immutableMiddle, field)}
		}
		target := olmcore.RefOf(t.observed)
		t.action = olmcore.Delete{Target: target, As: e.identity(t.kind),
			Cause: olmcore.Cause{Reason: ReasonStepImmutable, Message: field + " differs and cannot be changed"}}
		return verdict{status: v1alpha1.StepStatusUnknown}
	}
	if !managed && !e.d.in.Config.OverwriteUnmanaged && t.key.Kind != "ServiceAccount" {
		return unmanagedObject(t, have, want)
	}
	if e.taken(t, hash, owners, managed) || e.altered(t) {
		return verdict{outcome: done}
	}
	merged := merge(have, want, t.kind.gvk.Kind, managed)
	after, err := e.typed(t, merged)
	if err != nil {
		return unreadable(t, err)
	}
	after.SetOwnerReferences(t.observed.GetOwnerReferences())
	if managed {
		refs, _ := olmcore.AddOwnerReferences(t.observed.GetOwnerReferences(), owners)
		after.SetOwnerReferences(refs)
	} else {
		e.d.diagnose(olmcore.Info, ReasonUnmanagedObjectUpdated, stepPath(t.steps[0]), "%s was there before the operator and gets no owner", t.key)
	}
	if same(t.observed, after) {
		return verdict{outcome: done}
	}
	annotations, _ := olmcore.MergeLabels(after.GetAnnotations(), map[string]string{e.d.in.Config.stepHashKey(): hash})
	after.SetAnnotations(annotations)
	return e.change(t, after)
}

// change puts the Update to after on the target.
func (e *evaluation) change(t *target, after olmcore.Object) verdict {
	action := olmcore.UpdateOf(t.observed, after, olmcore.Cause{Reason: ReasonStepDiffers, Message: t.key.Kind + " differs from the step"})
	action.As = e.identity(t.kind)
	t.action = action
	return verdict{status: v1alpha1.StepStatusUnknown}
}

// create puts the Create of an object on the target.
func (e *evaluation) create(t *target, want map[string]any) verdict {
	labels := stringsOf(metadataOf(want), "labels")
	labels[olmcore.LabelManaged] = "true"
	e.labelComponents(t, want, labels)
	metadataOf(want)["labels"] = labels
	o, err := e.typed(t, want)
	if err != nil {
		return unreadable(t, err)
	}
	action := olmcore.CreateOf(o, olmcore.Cause{Reason: ReasonStepAbsent, Message: t.key.Kind + " is absent"})
	action.As = e.identity(t.kind)
	t.action = action
	return verdict{asked: v1alpha1.StepStatusNotPresent}
}

func refOf(t *target) olmcore.Ref {
	apiVersion, kind := t.kind.gvk.ToAPIVersionAndKind()
	return olmcore.Ref{APIVersion: apiVersion, Kind: kind, Namespace: t.key.Namespace, Name: t.key.Name}
}

// typed returns JSON values as an object of the target's kind.
func (e *evaluation) typed(t *target, object map[string]any) (olmcore.Object, error) {
	o := olmcore.NewObject(t.kind.gvk)
	if err := olmcore.FromMap(object, o); err != nil {
		return nil, err
	}
	if o.GetName() != t.key.Name {
		return nil, fmt.Errorf("its name is %q", o.GetName())
	}
	return o, nil
}

func unreadable(t *target, err error) verdict {
	if t.kind.gvk.Kind == kindCRD {
		return verdict{outcome: invalid, message: "v1 crd unmarshaling failed: " + err.Error()}
	}
	return verdict{outcome: invalid, message: fmt.Sprintf("error parsing step manifest: %s: %s", t.key.Name, err)}
}

// same compares an observed object with what would be written, leaving kind and
// version aside, which typed clients do not fill in.
func same(have, after olmcore.Object) bool {
	gvk := after.GetObjectKind().GroupVersionKind()
	after.GetObjectKind().SetGroupVersionKind(have.GetObjectKind().GroupVersionKind())
	equal := apiequality.Semantic.DeepEqual(have, after)
	after.GetObjectKind().SetGroupVersionKind(gvk)
	return equal
}

// taken reports that this plan wrote the object in the last round, and that
// another plan did so since then: two plans that describe one object would take
// it from each other for ever. What is read may be behind: that the write arrived
// is seen by the owner that it added, which stays, or by owner labels that are
// not those of the predecessor.
func (e *evaluation) taken(t *target, hash string, owners []metav1.OwnerReference, managed bool) bool {
	have := t.observed.GetAnnotations()[e.d.in.Config.stepHashKey()]
	if last, ran := e.d.in.LastRun[t.key]; !ran || last.Class != olmcore.ClassNone || have == hash {
		return false
	}
	owner, owned := olmcore.OwnerOf(t.observed.GetLabels())
	switch {
	case owned && t.kind.labelled:
		if e.precedes(owner.Namespace, owner.Name, t) {
			return false
		}
	case have == "" || managed && !ownedByAll(t.observed, owners):
		return false
	}
	e.shared(t)
	return true
}

// shared reports an object that another plan wrote after this one.
func (e *evaluation) shared(t *target) {
	e.d.diagnose(olmcore.Warning, ReasonSharedObject, stepPath(t.steps[0]), "%s is also that of another plan, which wrote it last", t.key)
}

// precedes reports whether a ClusterServiceVersion is what a target's own one
// takes over from: an earlier one of its package.
func (e *evaluation) precedes(namespace, name string, t *target) bool {
	if namespace != e.plan.Namespace || slices.Contains(t.operators(), name) {
		return false
	}
	return slices.ContainsFunc(t.operators(), func(own string) bool {
		csv := e.resolvingCSV(own)
		return packagePrefix(own) == packagePrefix(name) || csv != nil && csv.Spec.Replaces == name
	})
}

// foreign reports that an object belongs to a ClusterServiceVersion that is
// neither the step's nor one that it takes over from. Deleting it would harm that
// one.
func (e *evaluation) foreign(t *target) bool {
	theirs := func(namespace, name string) bool {
		return !(namespace == e.plan.Namespace && slices.Contains(t.operators(), name)) && !e.precedes(namespace, name, t)
	}
	if owner, owned := olmcore.OwnerOf(t.observed.GetLabels()); owned && t.kind.labelled {
		return theirs(owner.Namespace, owner.Name)
	}
	return slices.ContainsFunc(t.observed.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return isCSV(r) && theirs(e.plan.Namespace, r.Name)
	})
}

// altered reports that an Update of the object succeeded and its mark is not
// there: something rewrites what is stored. A step that is recorded as Unknown
// met an object that was there, so what succeeded was no Create.
func (e *evaluation) altered(t *target) bool {
	last, ran := e.d.in.LastRun[t.key]
	if !ran || last.Class != olmcore.ClassNone || e.plan.Status.Plan[t.steps[0]].Status != v1alpha1.StepStatusUnknown ||
		t.observed.GetAnnotations()[e.d.in.Config.stepHashKey()] != "" {
		return false
	}
	e.d.diagnose(olmcore.Info, ReasonAppliedContentAltered, stepPath(t.steps[0]), "%s was stored with another content than was written", t.key)
	return true
}
