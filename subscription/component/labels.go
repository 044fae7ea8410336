// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

const (
	// alongsidePrefix starts the annotations of a CustomResourceDefinition that name, as namespace/name, the
	// ClusterServiceVersions with which it came.
	alongsidePrefix = "operatorframework.io/installed-alongside-"
	// maxSharedKeys is how many component labels an object outside of the namespaces has at most, and with it how much
	// of the object those who may label a CSV can fill.
	maxSharedKeys = 100
)

// LabelsInput is what Labels looks at: the operators of one namespace.
type LabelsInput struct {
	Now       time.Time
	Namespace string
	// Subscriptions and ClusterServiceVersions are those of the namespace.
	Subscriptions          []*v1alpha1.Subscription
	ClusterServiceVersions map[string]*v1alpha1.ClusterServiceVersion
	// Owned are objects that may belong to the ClusterServiceVersions.
	Owned []olmcore.Object
	// PreviousPackages are the packages that a Subscription followed before, by UID.
	PreviousPackages map[types.UID][]string
	// Written are the Subscriptions, by name, that the same result writes already: they get their labels in the next
	// one.
	Written map[string]bool
}

// Labels adds the component labels that Subscriptions, the CSVs that they installed, and what those own lack: one
// Update for each object, sorted by reference. No label is removed but that of an earlier package from a Subscription.
// Nothing of a CSV is labelled while it is in a phase that it will leave, until it has been there for two minutes.
//
// Source: operator-lifecycle-manager pkg/controller/operators/operators, adoption controller. Differs: InstallPlans are
// package installplan's.
func Labels(in LabelsInput) olmcore.Result {
	l := labels{in: in}
	for _, s := range in.Subscriptions {
		l.subscription(s)
	}
	for _, o := range in.Owned {
		if relation.Writable(o) {
			l.owned(o)
		}
	}
	l.out.Actions = updates(l.changes)
	return l.out
}

// labels is a result of Labels that is being made.
type labels struct {
	in      LabelsInput
	changes []change
	out     olmcore.Result
}

// change is one label that one object lacks, or has and should not.
type change struct {
	object olmcore.Object
	key    string
	stale  bool
}

func (l *labels) add(o olmcore.Object, key string) {
	l.changes = append(l.changes, change{o, key, false})
}

// subscription adds the key of a Subscription to it and to the CSV that it installed.
func (l *labels) subscription(s *v1alpha1.Subscription) {
	if s.Spec == nil || s.Spec.Package == "" || s.DeletionTimestamp != nil {
		return
	}
	key, err := olmcore.ComponentLabelKey(s.Spec.Package, l.in.Namespace)
	if err != nil {
		l.out.Diagnostics = append(l.out.Diagnostics, olmcore.Diagnose(olmcore.Error, ReasonLabelKeyInvalid, olmcore.RefOf(s), "spec.name", "%s", err))
		return
	}
	if !l.in.Written[s.Name] {
		if !has(s, key) {
			l.add(s, key)
		}
		for _, pkg := range l.in.PreviousPackages[s.UID] {
			if old, err := olmcore.ComponentLabelKey(pkg, l.in.Namespace); err == nil && old != key && has(s, old) {
				l.changes = append(l.changes, change{s, old, true})
			}
		}
	}
	if c := l.in.ClusterServiceVersions[s.Status.InstalledCSV]; c != nil && !has(c, key) && relation.Writable(c) && !c.IsCopied() && !l.waitsFor(c) {
		l.add(c, key)
	}
}

// owned adds the keys that an object lacks of the CSVs that own it.
func (l *labels) owned(o olmcore.Object) {
	kind := olmcore.GVKOf(o).Kind
	switch kind {
	case v1alpha1.SubscriptionKind, v1alpha1.ClusterServiceVersionKind, v1alpha1.InstallPlanKind:
		return // they have rules of their own
	}
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind != v1alpha1.ClusterServiceVersionKind || o.GetNamespace() != l.in.Namespace {
			continue
		}
		if c := l.in.ClusterServiceVersions[ref.Name]; c != nil && c.UID == ref.UID && c.UID != "" {
			l.inherit(o, c)
		}
	}
	if owner, ok := olmcore.OwnerOf(o.GetLabels()); ok && owner.Kind == v1alpha1.ClusterServiceVersionKind && owner.Namespace == l.in.Namespace {
		if c := l.in.ClusterServiceVersions[owner.Name]; c != nil && (owner.UID == "" || owner.UID == c.UID) {
			l.inherit(o, c)
		}
	}
	if o.GetNamespace() == "" && kind == "CustomResourceDefinition" {
		for _, name := range cameWith(o, l.in.Namespace) {
			if c := l.in.ClusterServiceVersions[name]; c != nil && slices.ContainsFunc(c.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool { return d.Name == o.GetName() }) {
				l.inherit(o, c)
			}
		}
	}
}

// cameWith returns the CSVs of a namespace with which a CustomResourceDefinition came, as an InstallPlan noted on it.
// To claim to own it is not enough: whoever may write a CSV can claim any.
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

// inherit adds the component keys of a CSV that an object lacks. An object outside of the namespaces gets only those of
// Subscriptions which have the CSV installed: whoever may write a CSV gives it any label.
func (l *labels) inherit(o olmcore.Object, c *v1alpha1.ClusterServiceVersion) {
	if c.DeletionTimestamp != nil || c.IsCopied() {
		return
	}
	keys, room := componentKeys(c.Labels), len(c.Labels)
	if o.GetNamespace() == "" {
		keys, room = l.installedKeys(c), maxSharedKeys-len(componentKeys(o.GetLabels()))
		for _, ch := range l.changes {
			if ch.object == o {
				room--
			}
		}
	}
	for _, key := range keys {
		if !has(o, key) && room > 0 && !l.waitsFor(c) {
			l.add(o, key)
			room--
		}
	}
}

// installedKeys returns the keys that a CSV has of Subscriptions that installed it.
func (l *labels) installedKeys(c *v1alpha1.ClusterServiceVersion) []string {
	var keys []string
	for _, s := range l.in.Subscriptions {
		if s.Spec == nil || s.Status.InstalledCSV != c.Name {
			continue
		}
		key, err := olmcore.ComponentLabelKey(s.Spec.Package, l.in.Namespace)
		if err == nil && has(c, key) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// waitsFor reports whether package csv is writing a CSV and what belongs to it: in a phase that it will leave, until it
// has been there for the grace period.
func (l *labels) waitsFor(c *v1alpha1.ClusterServiceVersion) bool {
	if c.Status.Phase == v1alpha1.CSVPhaseSucceeded || c.Status.Phase == v1alpha1.CSVPhaseFailed {
		return false
	}
	start := c.CreationTimestamp.Time
	if at := c.Status.LastTransitionTime; at != nil && at.After(start) {
		start = at.Time
	}
	left := relation.Grace - max(0, l.in.Now.Sub(start))
	l.out.Requeue(left)
	return left > 0
}

func has(o olmcore.Object, key string) bool {
	_, ok := o.GetLabels()[key]
	return ok
}

// componentKeys returns the component label keys among labels, sorted.
func componentKeys(labels map[string]string) []string {
	var keys []string
	for key := range labels {
		if strings.HasPrefix(key, olmcore.ComponentLabelPrefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// updates makes one Update for each object, sorted by its reference. Of an object that was handed in twice, as
// different ones, it is not known which is true, and neither is used.
func updates(changes []change) []olmcore.Action {
	byObject := map[olmcore.Object][]change{}
	versions := map[olmcore.Key]map[olmcore.Object]bool{}
	for _, c := range changes {
		byObject[c.object] = append(byObject[c.object], c)
		key := olmcore.KeyOf(c.object)
		if versions[key] == nil {
			versions[key] = map[olmcore.Object]bool{}
		}
		versions[key][c.object] = true
	}
	var actions []olmcore.Action
	for o, list := range byObject {
		if len(versions[olmcore.KeyOf(o)]) == 1 {
			actions = append(actions, update(o, list))
		}
	}
	slices.SortFunc(actions, func(a, b olmcore.Action) int {
		return a.(olmcore.Update).Target.Compare(b.(olmcore.Update).Target)
	})
	return actions
}

func update(before olmcore.Object, changes []change) olmcore.Action {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.key, b.key) })
	labels := map[string]string{}
	maps.Copy(labels, before.GetLabels())
	for _, c := range changes {
		if c.stale {
			delete(labels, c.key)
			continue
		}
		labels[c.key] = ""
	}
	after := before.DeepCopyObject().(olmcore.Object)
	after.SetLabels(labels)
	cause := olmcore.Cause{Reason: ReasonLabelMissing, Message: "the object belongs to the operator of " + changes[0].key}
	if changes[0].stale {
		cause = olmcore.Cause{Reason: ReasonLabelStale, Message: "the object does not belong to the operator of " + changes[0].key}
	}
	return olmcore.UpdateOf(before, after, cause)
}
