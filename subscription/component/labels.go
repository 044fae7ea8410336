// SPDX-License-Identifier: Apache-2.0

package component

import (
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
	// alongsidePrefix is the prefix of the annotations of a CustomResourceDefinition that name the ClusterServiceVersions
	// with which it was installed, as namespace/name.
	alongsidePrefix = "operatorframework.io/installed-alongside-"
	// maxSharedKeys is the maximum number of component labels of a cluster-scoped object. It limits how much of the object
	// tenants that label a CSV can fill.
	maxSharedKeys = 100
)

// LabelsInput is the input of Labels: the operators of one namespace.
type LabelsInput struct {
	Now       time.Time
	Namespace string
	// Subscriptions contains all Subscriptions of the namespace. ClusterServiceVersions contains all CSVs of the namespace
	// by name.
	Subscriptions          []*v1alpha1.Subscription
	ClusterServiceVersions map[string]*v1alpha1.ClusterServiceVersion
	// Owned contains objects that may belong to the ClusterServiceVersions, for example the result of GatherOwned.
	Owned []olmcore.Object
	// PreviousPackages maps the UID of a Subscription to the packages that the Subscription named earlier.
	PreviousPackages map[types.UID][]string
	// Written contains the names of the Subscriptions whose status the caller updates now. Labels does not change the
	// labels of these Subscriptions until a later call.
	Written map[string]bool
}

// Labels adds missing component labels to Subscriptions, to the CSVs that they installed, and to the objects that those
// CSVs own. The Result has one Update for each object, sorted by reference. If the package of a Subscription changed,
// Labels removes the label of the earlier package from the Subscription. While a CSV is in a transient phase, Labels
// waits up to two minutes before it labels the CSV and its objects.
//
// Source: operator-lifecycle-manager pkg/controller/operators/operators, adoption controller. Differs: OLM's adoption
// controller also labels InstallPlans. In this library, package installplan labels them.
func Labels(in LabelsInput) olmcore.Result {
	l := labels{in: &in, changes: map[olmcore.Object]map[string]bool{}}
	for _, s := range in.Subscriptions {
		l.subscription(s)
	}
	for _, o := range in.Owned {
		if relation.Writable(o) {
			l.owned(o)
		}
	}
	l.result.Actions = l.updates()
	return l.result
}

// labels collects the result of Labels.
type labels struct {
	in *LabelsInput // as the caller passed it
	// changes contains the keys to add (true) and to remove (false), by object.
	changes map[olmcore.Object]map[string]bool
	result  olmcore.Result
}

// change records that an object should have, or should not have, a key. It does nothing if that is already so.
func (l *labels) change(o olmcore.Object, key string, want bool) {
	if has(o, key) == want {
		return
	}
	if l.changes[o] == nil {
		l.changes[o] = map[string]bool{}
	}
	l.changes[o][key] = want
}

// subscription adds the key of a Subscription to it and to the CSV that it installed.
func (l *labels) subscription(s *v1alpha1.Subscription) {
	if s.Spec == nil || s.Spec.Package == "" || s.DeletionTimestamp != nil {
		return
	}
	key, err := olmcore.ComponentLabelKey(s.Spec.Package, l.in.Namespace)
	if err != nil {
		invalid := olmcore.Diagnose(olmcore.Error, ReasonLabelKeyInvalid, olmcore.RefOf(s), "spec.name", "%s", err)
		l.result.Diagnostics = append(l.result.Diagnostics, invalid)
		return
	}
	if !l.in.Written[s.Name] {
		l.change(s, key, true)
		for _, pkg := range l.in.PreviousPackages[s.UID] {
			old, err := olmcore.ComponentLabelKey(pkg, l.in.Namespace)
			if err == nil && old != key {
				l.change(s, old, false)
			}
		}
	}
	c := l.in.ClusterServiceVersions[s.Status.InstalledCSV]
	if c != nil && !has(c, key) && relation.Writable(c) && !c.IsCopied() && !l.waitsFor(c) {
		l.change(c, key, true)
	}
}

// owned adds the keys of the CSVs that own an object. A CustomResourceDefinition gets the keys of the CSVs that an
// InstallPlan recorded in its annotations. That a CSV lists it as owned is not enough, because a tenant who can write a
// CSV could list any.
func (l *labels) owned(o olmcore.Object) {
	kind := olmcore.GVKOf(o).Kind
	switch kind {
	case v1alpha1.SubscriptionKind, v1alpha1.ClusterServiceVersionKind, v1alpha1.InstallPlanKind:
		return // they have rules of their own
	}
	owners := ownersOf(o, l.in.Namespace, l.in.ClusterServiceVersions)
	if kind == "CustomResourceDefinition" && o.GetNamespace() == "" {
		for _, key := range slices.Sorted(maps.Keys(o.GetAnnotations())) {
			name, isHere := strings.CutPrefix(o.GetAnnotations()[key], l.in.Namespace+"/")
			c := l.in.ClusterServiceVersions[name]
			if isHere && strings.HasPrefix(key, alongsidePrefix) && c != nil && slices.Contains(ownedCRDs(c), o.GetName()) {
				owners = append(owners, c)
			}
		}
	}
	for _, c := range owners {
		l.inherit(o, c)
	}
}

// inherit adds the component keys of a CSV to an object. A cluster-scoped object gets only the keys of Subscriptions
// that have the CSV installed, up to maxSharedKeys, because a tenant who can write a CSV can add any label.
func (l *labels) inherit(o olmcore.Object, c *v1alpha1.ClusterServiceVersion) {
	if c.DeletionTimestamp != nil || c.IsCopied() {
		return
	}
	keys, room := componentKeys(c.Labels), len(c.Labels)
	if o.GetNamespace() == "" {
		keys, room = l.installedKeys(c), maxSharedKeys-len(componentKeys(o.GetLabels()))-len(l.changes[o])
	}
	for _, key := range keys {
		if !has(o, key) && room > 0 && !l.waitsFor(c) {
			l.change(o, key, true)
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

// waitsFor reports whether package csv may still write a CSV and its objects: in a transient phase, within the grace
// period.
func (l *labels) waitsFor(c *v1alpha1.ClusterServiceVersion) bool {
	if c.Status.Phase == v1alpha1.CSVPhaseSucceeded || c.Status.Phase == v1alpha1.CSVPhaseFailed {
		return false
	}
	start := relation.Latest(c.CreationTimestamp.Time, relation.Time(c.Status.LastTransitionTime))
	left := relation.Grace - max(0, l.in.Now.Sub(start))
	l.result.Requeue(left)
	return left > 0
}

// updates returns one Update for each changed object, sorted by reference. An object that was passed twice with
// different contents is not updated.
func (l *labels) updates() []olmcore.Action {
	var updates []olmcore.Action
	versions := map[olmcore.Key]int{}
	for o := range l.changes {
		versions[olmcore.KeyOf(o)]++
	}
	for before, changes := range l.changes {
		if versions[olmcore.KeyOf(before)] > 1 {
			continue
		}
		keys, labels := slices.Sorted(maps.Keys(changes)), map[string]string{}
		maps.Copy(labels, before.GetLabels())
		for _, key := range keys {
			if delete(labels, key); changes[key] {
				labels[key] = ""
			}
		}
		after := before.DeepCopyObject().(olmcore.Object)
		after.SetLabels(labels)
		cause := olmcore.Cause{Reason: ReasonLabelMissing, Message: "the object belongs to the operator with the label " + keys[0]}
		if !changes[keys[0]] {
			cause = olmcore.Cause{Reason: ReasonLabelStale, Message: "the object does not belong to the operator with the label " + keys[0]}
		}
		updates = append(updates, olmcore.UpdateOf(before, after, cause))
	}
	slices.SortFunc(updates, func(a, b olmcore.Action) int {
		return a.(olmcore.Update).Target.Compare(b.(olmcore.Update).Target)
	})
	return updates
}

// ownersOf returns the CSVs of a namespace that own an object, by reference or by labels.
func ownersOf(o olmcore.Object, namespace string, csvs map[string]*v1alpha1.ClusterServiceVersion) []*v1alpha1.ClusterServiceVersion {
	var owners []*v1alpha1.ClusterServiceVersion
	for _, ref := range o.GetOwnerReferences() {
		c := csvs[ref.Name]
		if c != nil && ref.Kind == v1alpha1.ClusterServiceVersionKind && c.UID == ref.UID && c.UID != "" && o.GetNamespace() == namespace {
			owners = append(owners, c)
		}
	}
	named, _ := olmcore.OwnerOf(o.GetLabels())
	if c := csvs[named.Name]; c != nil {
		self := olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: namespace, Name: c.Name, UID: c.UID}
		if self.Owns(o.GetLabels()) {
			owners = append(owners, c)
		}
	}
	return owners
}

// ownedCRDs returns the names of the CustomResourceDefinitions that a CSV lists as owned.
func ownedCRDs(c *v1alpha1.ClusterServiceVersion) []string {
	names := make([]string, len(c.Spec.CustomResourceDefinitions.Owned))
	for i, d := range c.Spec.CustomResourceDefinitions.Owned {
		names[i] = d.Name
	}
	return names
}

func has(o olmcore.Object, key string) bool {
	_, ok := o.GetLabels()[key]
	return ok
}

// componentKeys returns the component label keys among labels, sorted.
func componentKeys(labels map[string]string) []string {
	return slices.DeleteFunc(
		slices.Sorted(maps.Keys(labels)),
		func(key string) bool { return !strings.HasPrefix(key, olmcore.ComponentLabelPrefix) },
	)
}
