// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

var coolKind = schema.GroupKind{Group: "example.com", Kind: "Cool"}

// dying draws the world of a CSV that is being deleted, with some of the things
// that a clean-up looks for.
func dying(t *rapid.T) csv.Input {
	in := likely(t)
	c := in.ClusterServiceVersion
	for _, crd := range in.CustomResourceDefinitions.Items {
		if rapid.IntRange(0, 9).Draw(t, "came alongside") > 0 {
			cameAlongside(crd, "ns/cool.v1")
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
	in.Deletion = cleanup.Deletion{
		Peers: olmcore.Found[*v1alpha1.ClusterServiceVersion](), Namespaces: olmcore.Found(home),
		ClusterObjects: olmcore.Found[olmcore.Object](), WellKnown: olmcore.Found[olmcore.Object](), Copies: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		Operands: map[schema.GroupKind]olmcore.Observed[olmcore.Object]{coolKind: olmcore.Found[olmcore.Object]()},
	}
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
	in.Config.Cleanup = cleanup.Config{
		Disabled:       rapid.IntRange(0, 19).Draw(t, "disabled") == 0,
		OperandTimeout: time.Duration(rapid.SampledFrom([]int{0, 0, 60}).Draw(t, "timeout")) * time.Second,
	}
	return withoutUnread(distinct(in))
}

// withoutUnread takes the items off the lists that were not read.
func withoutUnread(in csv.Input) csv.Input {
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

// copied is what a copy of input's CSV looks like.
func copied(namespace string) *v1alpha1.ClusterServiceVersion {
	c := operator("cool.v1", 1)
	c.Namespace, c.UID, c.Finalizers, c.Labels = namespace, types.UID("copy-"+namespace), nil, map[string]string{"olm.copiedFrom": "ns"}
	hold(c, succeeded, "Copied", "The operator is running in ns but is managing this namespace", time.Hour)
	return c
}

func operandsOf(items ...olmcore.Object) map[schema.GroupKind]olmcore.Observed[olmcore.Object] {
	return map[schema.GroupKind]olmcore.Observed[olmcore.Object]{coolKind: olmcore.Found(items...)}
}

func unreadForCleanup(in *csv.Input) map[string]*bool {
	return map[string]*bool{
		"Namespaces": &in.Deletion.Namespaces.Complete, "objects with owner labels": &in.Deletion.ClusterObjects.Complete,
		"copies of the ClusterServiceVersion": &in.Deletion.Copies.Complete, "ClusterRoleBindings and RoleBindings for serving certificates": &in.Deletion.WellKnown.Complete, "ClusterServiceVersions of all namespaces": &in.Deletion.Peers.Complete,
	}
}

// belongings are an object of each sort that carries the owner labels of input's
// CSV.
func belongings() []olmcore.Object {
	reader := ours("reader")
	reader.Namespace = "kube-system"
	return []olmcore.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: ours("validating")},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: ours("mutating")},
		&apiregistrationv1.APIService{ObjectMeta: ours("v1.api")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: ours("binding")}, &rbacv1.ClusterRole{ObjectMeta: ours("role")},
		&rbacv1.RoleBinding{ObjectMeta: reader}, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: ours("class")}, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: ours("crd")},
	}
}

// delegator is what serving certificates need in the cluster: nobody labels it.
func delegator() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "cool-service-system:auth-delegator", UID: "d", ResourceVersion: "3", CreationTimestamp: *ago(time.Hour), Labels: map[string]string{"olm.managed": "true"}},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "cool"}},
	}
}

// aged gives an object a state in which a clean-up can find it: there, leaving
// for some time, or refused.
func aged(t *rapid.T, in *csv.Input, o olmcore.Object, i int) olmcore.Object {
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
