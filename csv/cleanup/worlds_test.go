// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/cleanup"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

var phases = []v1alpha1.ClusterServiceVersionPhase{v1alpha1.CSVPhaseNone, pending, v1alpha1.CSVPhaseInstalling, succeeded, v1alpha1.CSVPhaseFailed, replacing, deleting}

func phaseOf(t *rapid.T, label string) v1alpha1.ClusterServiceVersionPhase {
	return rapid.SampledFrom(phases).Draw(t, label)
}

// anyPast draws a version in any phase, with any past, among any others of its namespace.
func anyPast(t *rapid.T) cleanup.Input {
	in := leaving()
	c := in.ClusterServiceVersion
	why := rapid.SampledFrom([]reason{"InstallSucceeded", "RequirementsNotMet", "BeingReplaced", "Replaced", "WaitingOnCleanup"}).Draw(t, "reason")
	age := time.Duration(rapid.SampledFrom([]int{0, 1, 5, 30, 3600}).Draw(t, "age")) * time.Second
	hold(c, phaseOf(t, "phase"), why, "words", age)
	for range rapid.IntRange(0, 2).Draw(t, "past") {
		before := rapid.SampledFrom([]reason{"InstallSucceeded", "Replaced", "WaitingOnCleanup"}).Draw(t, "before")
		c.Status.Conditions = append([]v1alpha1.ClusterServiceVersionCondition{{Phase: deleting, Reason: before}}, c.Status.Conditions...)
	}
	switch rapid.IntRange(0, 7).Draw(t, "deployment") {
	case 0:
		in.Deployments.Items = nil
	case 1:
		in.Deployments.Items[0].Status.Conditions = nil
	case 2:
		in.Deployments.Items[0].DeletionTimestamp = ago(time.Duration(rapid.SampledFrom([]int{0, 29, 30}).Draw(t, "stopped for")) * time.Second)
	case 3:
		in.Deployments.Items[0].Labels["olm.owner"] = "other.v1"
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"successor", "predecessor", "claimant.v1"}), 0, 2, rapid.ID).Draw(t, "others") {
		o := operator(name, 2)
		hold(o, phaseOf(t, name), "", "", time.Minute)
		switch name {
		case "successor":
			o.Spec.Replaces = c.Name
			o.Spec.CustomResourceDefinitions.Owned = nil
		case "predecessor":
			c.Spec.Replaces = name
			o.Spec.CustomResourceDefinitions.Owned = nil
		}
		if rapid.IntRange(0, 2).Draw(t, "goes, too") == 0 {
			o.DeletionTimestamp = ago(0)
		}
		in.Neighbours.Items = append(in.Neighbours.Items, o)
	}
	if rapid.IntRange(0, 3).Draw(t, "webhook") == 0 {
		c.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{DeploymentName: "cool", Type: v1alpha1.ConversionWebhook}}
		in.CustomResourceDefinitions.Items[0].Spec.Conversion = ourConversion()
	}
	switch rapid.IntRange(0, 29).Draw(t, "not read") {
	case 0:
		in.Neighbours = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}
	case 1:
		in.CustomResourceDefinitions = olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]{}
	case 2:
		in.Deployments = olmcore.Observed[*appsv1.Deployment]{}
	case 3:
		in.OperatorGroups = olmcore.Observed[*operatorsv1.OperatorGroup]{}
	}
	return in
}

// dying draws the world of a CSV that is being deleted, with some of the things that a cleanup looks for.
func dying(t *rapid.T) cleanup.Input {
	in := anyPast(t)
	c := in.ClusterServiceVersion
	for _, crd := range in.CustomResourceDefinitions.Items {
		if rapid.IntRange(0, 9).Draw(t, "came alongside") == 0 {
			crd.Annotations = nil
		}
	}
	deleted := time.Duration(rapid.SampledFrom([]int{0, 1, 10, 29, 30, 61, 300, 600, 3600}).Draw(t, "deleted for")) * time.Second
	c.DeletionTimestamp = ago(deleted)
	c.Spec.Cleanup.Enabled = rapid.Bool().Draw(t, "cleanup")
	c.Finalizers = append(c.Finalizers, rapid.SampledFrom([][]string{nil, nil, nil, {"orphan"}, {"foregroundDeletion"}}).Draw(t, "finalizers")...)
	if v := rapid.SampledFrom([]string{"", "", "", cleanup.OverrideAbandon, cleanup.OverrideSkipOperands, "nonsense"}).Draw(t, "override"); v != "" {
		c.Annotations[cleanup.AnnotationCleanup] = v
	}
	home := namespace("ns", nil)
	if rapid.IntRange(0, 5).Draw(t, "namespace") == 0 {
		home.Status.Phase = corev1.NamespaceTerminating
	}
	in.Deletion.Namespaces, in.Deletion.Operands = olmcore.Found(home), operandsOf()
	in.LastRun = olmcore.LastResults{}
	for i, o := range belongings() {
		if rapid.IntRange(0, 2).Draw(t, "there") == 0 {
			in.Deletion.ClusterObjects.Items = append(in.Deletion.ClusterObjects.Items, aged(t, &in, o, i))
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "delegator") == 0 {
		in.Deletion.WellKnown.Items = []olmcore.Object{aged(t, &in, delegator(), 99)}
	}
	if rapid.IntRange(0, 3).Draw(t, "copied") == 0 {
		in.Deletion.Copies.Items = []*v1alpha1.ClusterServiceVersion{aged(t, &in, copied("elsewhere"), 300).(*v1alpha1.ClusterServiceVersion)}
	}
	var operands []olmcore.Object
	for i := range rapid.IntRange(0, 3).Draw(t, "operands") {
		o := cool(fmt.Sprint("cool-", i), rapid.SampledFrom([][]string{nil, {"example.com/x"}}).Draw(t, "held")...)
		operands = append(operands, aged(t, &in, o, 200+i))
	}
	in.Deletion.Operands[coolKind] = olmcore.Found(operands...)
	if rapid.IntRange(0, 3).Draw(t, "peer") == 0 {
		p := operator("other.v1", 1)
		p.Namespace, p.UID, p.Annotations = "elsewhere", "other", nil
		in.Deletion.Peers.Items = []*v1alpha1.ClusterServiceVersion{p}
	}
	if rapid.IntRange(0, 3).Draw(t, "subscribed") == 0 {
		in.Subscriptions = olmcore.Found(&v1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Status: v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1"},
		})
	}
	lists := unreadForCleanup(&in)
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		*lists[name] = rapid.IntRange(0, 19).Draw(t, name) > 0
	}
	in.Config = cleanup.Config{
		Disabled:       rapid.IntRange(0, 19).Draw(t, "disabled") == 0,
		OperandTimeout: time.Duration(rapid.SampledFrom([]int{0, 0, 60}).Draw(t, "timeout")) * time.Second,
	}
	return withoutUnread(in)
}

// withoutUnread takes the items off the lists that were not read.
func withoutUnread(in cleanup.Input) cleanup.Input {
	d := &in.Deletion
	if !d.Peers.Complete {
		d.Peers.Items = nil
	}
	if !d.Copies.Complete {
		d.Copies.Items = nil
	}
	if !d.Namespaces.Complete {
		d.Namespaces.Items = nil
	}
	return in
}

func unreadForCleanup(in *cleanup.Input) map[string]*bool {
	return map[string]*bool{
		"Namespaces": &in.Deletion.Namespaces.Complete, "objects with owner labels": &in.Deletion.ClusterObjects.Complete,
		"copies of the ClusterServiceVersion": &in.Deletion.Copies.Complete, "ClusterRoleBindings and RoleBindings for serving certificates": &in.Deletion.WellKnown.Complete, "ClusterServiceVersions of all namespaces": &in.Deletion.Peers.Complete,
	}
}

// aged gives an object a state in which a cleanup can find it: there, leaving for some time, or refused.
func aged(t *rapid.T, in *cleanup.Input, o olmcore.Object, i int) olmcore.Object {
	before := in.ClusterServiceVersion.DeletionTimestamp.Time
	o.SetCreationTimestamp(metav1.NewTime(before.Add(-time.Hour)))
	switch rapid.IntRange(0, 7).Draw(t, fmt.Sprint("state ", i)) {
	case 0:
		o.SetDeletionTimestamp(ago(time.Duration(rapid.SampledFrom([]int{0, 59, 299, 301}).Draw(t, "for")) * time.Second))
		o.SetFinalizers([]string{"example.com/x"})
	case 1:
		labels, _ := olmcore.MergeLabels(o.GetLabels(), map[string]string{"olm.owner.uid": "another"})
		o.SetLabels(labels)
	case 2:
		o.SetCreationTimestamp(metav1.NewTime(before.Add(time.Second)))
	case 3:
		o.SetOwnerReferences(ownerCSV("other.v1"))
	case 4:
		in.LastRun[olmcore.KeyOf(o)] = olmcore.LastResult{
			Class: rapid.SampledFrom([]olmcore.ErrorClass{olmcore.Gone, olmcore.NoMatch, olmcore.Conflict, olmcore.Transient, olmcore.Forbidden, olmcore.Invalid, olmcore.Webhook, "Odd"}).Draw(t, "class"),
			Count: rapid.IntRange(1, 9).Draw(t, "count"), Message: "no",
			First: now.Add(-time.Duration(rapid.SampledFrom([]int{0, 599, 600}).Draw(t, "since")) * time.Second), Last: now.Add(-time.Duration(rapid.IntRange(0, 2).Draw(t, "last")) * time.Second),
		}
	}
	return o
}
