// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// alongsidePrefix starts the annotations of a CustomResourceDefinition that name, as
// namespace/name, the ClusterServiceVersions with which it came.
const alongsidePrefix = "operatorframework.io/installed-alongside-"

// maxKey is the most bytes a component label key can have.
const maxKey = len(olmcore.ComponentLabelPrefix) + 63

// appendKey returns the component label key of a package in a buffer, nil when
// it is not simply its parts joined. It is olmcore.ComponentLabelKey without
// making a string, for the case that nothing is to be done; a key that stands in
// an object's labels is valid.
func appendKey(buffer []byte, pkg, namespace string) []byte {
	if len(pkg)+1+len(namespace) > 63 {
		return nil
	}
	key := append(buffer, olmcore.ComponentLabelPrefix...)
	key = append(key, pkg...)
	key = append(key, '.')
	return append(key, namespace...)
}

// hasKey reports whether labels hold a key; they never hold an empty one.
func hasKey(labels map[string]string, key []byte) bool {
	_, ok := labels[string(key)]
	return ok && len(key) > 0
}

// label adds the component labels that a Subscription and the CSV it installed
// lack. No label is removed but that of an earlier package from a Subscription.
// wrote says that the Subscription has a status write in this result already.
//
// Objects are made with their labels by packages installplan and csv; what is put here
// repairs. So nothing of a CSV is labelled while package csv takes it somewhere.
//
// Source: operator-lifecycle-manager pkg/controller/operators/operators, adoption
// controller. Differs: InstallPlans are package installplan's.
func (v *view) label(out *Outcome, missing []componentKey, sub *v1alpha1.Subscription, wrote bool) []componentKey {
	if sub.Spec == nil || sub.Spec.Package == "" || sub.DeletionTimestamp != nil {
		return missing
	}
	if v.previous != nil && !wrote {
		missing = v.staleKeys(missing, sub)
	}
	c := v.csv(sub.Status.InstalledCSV)
	var buffer [maxKey]byte
	if key := appendKey(buffer[:0], sub.Spec.Package, v.namespace); hasKey(sub.Labels, key) && (c == nil || hasKey(c.Labels, key)) {
		return missing
	}
	if c != nil && (!isWritable(c) || isCopied(c)) {
		c = nil
	}
	key, err := olmcore.ComponentLabelKey(sub.Spec.Package, v.namespace)
	if err != nil {
		out.Diagnostics = append(out.Diagnostics, olmcore.Diagnostic{
			Severity: failure, Reason: ReasonLabelKeyInvalid, Message: err.Error(),
			Target: olmcore.RefOf(sub).Unversioned(), Path: "spec.name",
		})
		return missing
	}
	if _, ok := sub.Labels[key]; !ok && !wrote {
		missing = append(missing, componentKey{sub, key, false})
	}
	if c != nil && v.isRestless(out, c) {
		c = nil
	}
	if c != nil {
		if _, ok := c.Labels[key]; !ok {
			missing = append(missing, componentKey{c, key, false})
		}
	}
	return missing
}

// labelRest adds what the CSVs own, and makes one action for each object.
func (v *view) labelRest(out *Outcome, missing []componentKey) {
	for _, o := range v.components {
		missing = v.componentKeys(out, missing, o)
	}
	if len(missing) > 0 {
		out.Actions = append(out.Actions, labelUpdates(missing)...)
	}
}

// componentKey is one label that one object lacks.
type componentKey struct {
	object olmcore.Object
	key    string
	stale  bool // it has the label, and should not
}

// staleKeys adds the keys of packages that a Subscription does not follow any
// more. An earlier package whose key is also the present one's has none.
func (v *view) staleKeys(missing []componentKey, sub *v1alpha1.Subscription) []componentKey {
	now, err := olmcore.ComponentLabelKey(sub.Spec.Package, v.namespace)
	if err != nil {
		return missing
	}
	for _, pkg := range v.previous[sub.UID] {
		key, err := olmcore.ComponentLabelKey(pkg, v.namespace)
		if _, ok := sub.Labels[key]; err == nil && ok && key != now {
			missing = append(missing, componentKey{sub, key, true})
		}
	}
	return missing
}

// componentKeys adds the keys that an object lacks of the CSVs that own it.
func (v *view) componentKeys(out *Outcome, missing []componentKey, o olmcore.Object) []componentKey {
	if !isWritable(o) {
		return missing
	}
	kind := olmcore.GVKOf(o).Kind
	switch kind {
	case v1alpha1.SubscriptionKind, v1alpha1.ClusterServiceVersionKind, v1alpha1.InstallPlanKind:
		return missing // they have rules of their own
	}
	labels := o.GetLabels()
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind != v1alpha1.ClusterServiceVersionKind || o.GetNamespace() != v.namespace {
			continue
		}
		if c := v.csv(ref.Name); c != nil && c.UID == ref.UID && c.UID != "" {
			missing = v.inherit(out, missing, o, labels, c)
		}
	}
	if owner, ok := olmcore.OwnerOf(labels); ok && owner.Kind == v1alpha1.ClusterServiceVersionKind && owner.Namespace == v.namespace {
		if c := v.csv(owner.Name); c != nil && (owner.UID == "" || owner.UID == c.UID) {
			missing = v.inherit(out, missing, o, labels, c)
		}
	}
	if o.GetNamespace() == "" && kind == "CustomResourceDefinition" {
		for _, name := range cameWith(o, v.namespace) {
			if c := v.csv(name); c != nil && slices.ContainsFunc(c.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool { return d.Name == o.GetName() }) {
				missing = v.inherit(out, missing, o, labels, c)
			}
		}
	}
	return missing
}

// cameWith returns the CSVs of a namespace with which a CustomResourceDefinition came, as
// an InstallPlan noted on it. To claim to own it is not enough: whoever may write a CSV
// can claim any.
func cameWith(crd olmcore.Object, namespace string) []string {
	var names []string
	for key, value := range crd.GetAnnotations() {
		if name, ours := strings.CutPrefix(value, namespace+"/"); ours && strings.HasPrefix(key, alongsidePrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isRestless reports whether package csv is writing a CSV and what belongs to it: in a
// phase that it will leave, until it has been there for the AuditGrace.
func (v *view) isRestless(out *Outcome, c *v1alpha1.ClusterServiceVersion) bool {
	if c.Status.Phase == v1alpha1.CSVPhaseSucceeded || c.Status.Phase == v1alpha1.CSVPhaseFailed {
		return false
	}
	start := c.CreationTimestamp.Time
	if at := c.Status.LastTransitionTime; at != nil && at.After(start) {
		start = at.Time
	}
	left := v.config.AuditGrace - since(start, v.now)
	out.Requeue(max(left, 0))
	return left > 0
}

// inherit adds the component keys of a CSV that labels lack.
func (v *view) inherit(out *Outcome, missing []componentKey, o olmcore.Object, labels map[string]string, c *v1alpha1.ClusterServiceVersion) []componentKey {
	if c.DeletionTimestamp != nil || isCopied(c) {
		return missing
	}
	shared := o.GetNamespace() == ""
	for key := range c.Labels {
		if _, ok := labels[key]; !ok && strings.HasPrefix(key, olmcore.ComponentLabelPrefix) && !shared && !v.isRestless(out, c) {
			missing = append(missing, componentKey{o, key, false})
		}
	}
	if shared {
		missing = v.inheritShared(out, missing, o, c)
	}
	return missing
}

// maxSharedKeys is how many component labels an object outside of the namespaces has at
// most, and with it how much of the object those who may label a CSV can fill.
const maxSharedKeys = 100

// inheritShared adds the keys of a CSV that an object outside of the namespaces lacks,
// and that are those of Subscriptions which have the CSV installed. Whoever may write a CSV
// gives it any label.
func (v *view) inheritShared(out *Outcome, missing []componentKey, o olmcore.Object, c *v1alpha1.ClusterServiceVersion) []componentKey {
	var keys []string
	count := 0
	for key := range o.GetLabels() {
		if strings.HasPrefix(key, olmcore.ComponentLabelPrefix) {
			count++
		}
	}
	for _, m := range missing {
		if m.object == o {
			count++
		}
	}
	for _, s := range v.subs {
		if s.Spec == nil || s.Status.InstalledCSV != c.Name {
			continue
		}
		key, err := olmcore.ComponentLabelKey(s.Spec.Package, v.namespace)
		_, ours := c.Labels[key]
		if _, has := o.GetLabels()[key]; err == nil && ours && !has && !slices.Contains(keys, key) && count+len(keys) < maxSharedKeys && !v.isRestless(out, c) {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		missing = append(missing, componentKey{o, key, false})
	}
	return missing
}

// isWritable reports whether an object stays and can be addressed safely.
func isWritable(o olmcore.Object) bool {
	return o.GetDeletionTimestamp() == nil && o.GetUID() != "" && o.GetResourceVersion() != ""
}

// labelUpdates makes one Update for each object, sorted by its reference. Of an
// object that was handed in twice, as different ones, it is not known which is
// true, and neither is used.
func labelUpdates(missing []componentKey) []olmcore.Action {
	if len(missing) == 0 {
		return nil
	}
	slices.SortFunc(missing, func(a, b componentKey) int {
		if c := olmcore.RefOf(a.object).Compare(olmcore.RefOf(b.object)); c != 0 {
			return c
		}
		return strings.Compare(a.key, b.key)
	})
	var actions []olmcore.Action
	for start := 0; start < len(missing); {
		before, twice := missing[start].object, false
		end := start + 1
		for end < len(missing) && olmcore.KeyOf(missing[end].object) == olmcore.KeyOf(before) {
			twice = twice || missing[end].object != before
			end++
		}
		if twice {
			start = end
			continue
		}
		after := before.DeepCopyObject().(olmcore.Object)
		labels := make(map[string]string, len(before.GetLabels())+end-start)
		for key, value := range before.GetLabels() {
			labels[key] = value
		}
		for _, m := range missing[start:end] {
			if m.stale {
				delete(labels, m.key)
				continue
			}
			labels[m.key] = ""
		}
		after.SetLabels(labels)
		cause := olmcore.Cause{Reason: ReasonComponentLabelMissing, Message: "the object belongs to the operator of " + missing[start].key}
		if missing[start].stale {
			cause = olmcore.Cause{Reason: ReasonComponentLabelStale, Message: "the object does not belong to the operator of " + missing[start].key}
		}
		actions = append(actions, olmcore.UpdateOf(before, after, cause))
		start = end
	}
	return actions
}
