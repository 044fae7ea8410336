// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// leaving is a healthy operator that was deleted ten seconds ago.
func leaving(t *testing.T) csv.Input {
	in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	deploy(t, &in)
	in.ClusterServiceVersion.DeletionTimestamp = ago(10 * time.Second)
	cameAlongside(in.CustomResourceDefinitions.Items[0], "ns/cool.v1")
	in.Deletion = cleanup.Deletion{
		Peers:          olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		Namespaces:     olmcore.Found(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}),
		ClusterObjects: olmcore.Found[olmcore.Object](), WellKnown: olmcore.Found[olmcore.Object](), Copies: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
	}
	return in
}

func ours(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), ResourceVersion: "3", CreationTimestamp: *ago(time.Hour),
		Labels: map[string]string{"olm.owner": "cool.v1", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion"},
	}
}

func cool(name string, finalizers ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Cool"}}
	o.SetNamespace("ns")
	o.SetName(name)
	o.SetUID(types.UID("uid-" + name))
	o.SetFinalizers(finalizers)
	return o
}

// does lists the actions as "verb Kind name".
func does(t *testing.T, in csv.Input) []string {
	t.Helper()
	out, err := reconcileCleanup(in)
	require.NoError(t, err)
	var list []string
	for _, a := range out.Actions {
		verb, target, _ := a.Describe()
		if verb != olmcore.VerbUpdateStatus {
			list = append(list, fmt.Sprintf("%s %s %s", verb, target.Kind, target.Name))
		}
	}
	return list
}

var release = []string{"update ClusterServiceVersion cool.v1"}

func TestStagesOfACleanUp(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: ours("role")}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: ours("binding")}
	for name, c := range map[string]struct {
		change func(in *csv.Input)
		want   []string
	}{
		"nothing outside the namespace: released at once": {func(*csv.Input) {}, release},
		"the operator stops before its permissions go": {func(in *csv.Input) {
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role, binding}
		}, []string{"delete Deployment cool"}},
		"then the permissions, bindings first": {func(in *csv.Input) {
			in.Deletion.ClusterObjects.Items, in.Deployments.Items = []olmcore.Object{role, binding}, nil
		}, []string{"delete ClusterRoleBinding binding", "delete ClusterRole role"}},
		"an operator that does not stop is not waited for long": {func(in *csv.Input) {
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role}
			in.Deployments.Items[0].DeletionTimestamp = ago(30 * time.Second)
		}, []string{"delete ClusterRole role"}},
		"webhooks go before the operator": {func(in *csv.Input) {
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: ours("hook")}}
		}, []string{"delete ValidatingWebhookConfiguration hook"}},
		"an APIService goes before the operator": {func(in *csv.Input) {
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role, &apiregistrationv1.APIService{ObjectMeta: ours("v1.api")}}
		}, []string{"delete APIService v1.api"}},
		"a dead conversion webhook is taken out": {func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{DeploymentName: "cool", Type: v1alpha1.ConversionWebhook}}
			in.CustomResourceDefinitions.Items[0].Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{
					Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "cool-service"},
				}},
			}
		}, []string{"update CustomResourceDefinition cools.example.com"}},
		"other cluster-scoped objects go last": {func(in *csv.Input) {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}}
			m := ours("class")
			u.SetName(m.Name)
			u.SetUID(m.UID)
			u.SetLabels(m.Labels)
			in.Deletion.ClusterObjects.Items = []olmcore.Object{u}
		}, []string{"delete PriorityClass class"}},
		"copies go, and nobody else's": {func(in *csv.Input) {
			original, another, leaving := copied("two"), copied("three"), copied("four")
			original.Labels, original.Status.Reason, original.Annotations = nil, "InstallSucceeded", map[string]string{"olm.operatorNamespace": "two"}
			another.Labels["olm.copiedFrom"] = "other"
			leaving.DeletionTimestamp = ago(time.Hour)
			renamed := copied("five")
			renamed.Name = "cool.v2"
			in.Deletion.Copies = olmcore.Found(original, another, leaving, renamed, copied("one"), copied("ns"))
		}, []string{"delete ClusterServiceVersion cool.v1"}},
		"a copy on its way out is not waited for": {func(in *csv.Input) {
			leaving := copied("four")
			leaving.DeletionTimestamp, leaving.Finalizers = ago(time.Second), []string{"example.com/x"}
			in.Deletion.Copies = olmcore.Found(leaving)
		}, release},
		"copies that are made again and again hold for a minute": {func(in *csv.Input) {
			in.ClusterServiceVersion.DeletionTimestamp = ago(10 * time.Minute)
			late, early := copied("evil"), copied("one")
			late.CreationTimestamp, early.CreationTimestamp = *ago(0), *ago(10*time.Minute - 30*time.Second)
			in.Deletion.Copies = olmcore.Found(late, early)
		}, []string{"delete ClusterServiceVersion cool.v1"}},
		"copies that are made again after a minute hold no more": {func(in *csv.Input) {
			in.ClusterServiceVersion.DeletionTimestamp = ago(10 * time.Minute)
			late := copied("evil")
			late.CreationTimestamp = *ago(0)
			in.Deletion.Copies = olmcore.Found(late)
		}, release},
		"bindings that were not read hold": {func(in *csv.Input) { in.Deletion.WellKnown = olmcore.Observed[olmcore.Object]{} }, nil},
		"two Deployments, in the order of their names": {func(in *csv.Input) {
			second := in.Deployments.Items[0].DeepCopy()
			second.Name, second.UID = "a", "a"
			in.Deployments.Items = append(in.Deployments.Items, second)
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role}
		}, []string{"delete Deployment a", "delete Deployment cool"}},
		"copies that were not read hold": {func(in *csv.Input) { in.Deletion.Copies = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{} }, nil},
		"a CRD is never deleted, whatever its labels": {func(in *csv.Input) {
			in.Deletion.ClusterObjects.Items = []olmcore.Object{&apiextensionsv1.CustomResourceDefinition{ObjectMeta: ours("crd")}}
		}, release},
		"nor is a Namespace": {func(in *csv.Input) {
			in.Deletion.ClusterObjects.Items = []olmcore.Object{&corev1.Namespace{ObjectMeta: ours("space")}}
		}, release},
		"a copy has nothing to clean up": {func(in *csv.Input) {
			in.ClusterServiceVersion.Labels["olm.copiedFrom"] = "other"
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role}
		}, release},
		"a binding for serving certificates is ours by its name": {func(in *csv.Input) {
			b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "cool-service-system:auth-delegator", UID: "d", Labels: map[string]string{"olm.managed": "true"}}}
			b.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "cool"}}
			in.Deletion.WellKnown.Items, in.Deployments.Items = []olmcore.Object{b}, nil
		}, []string{"delete ClusterRoleBinding cool-service-system:auth-delegator"}},
		"but not when it binds somebody else too": {func(in *csv.Input) {
			b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "cool-service-system:auth-delegator", UID: "d", Labels: map[string]string{"olm.managed": "true"}}}
			b.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "cool"}, {Kind: "ServiceAccount", Namespace: "other", Name: "cool"}}
			in.Deletion.WellKnown.Items = []olmcore.Object{b}
		}, release},
		"deleted with orphan propagation": {func(in *csv.Input) {
			in.ClusterServiceVersion.Finalizers = append(in.ClusterServiceVersion.Finalizers, "orphan")
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role}
		}, release},
		"abandoned by annotation": {func(in *csv.Input) {
			in.ClusterServiceVersion.Annotations[cleanup.AnnotationCleanup] = cleanup.OverrideAbandon
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role}
		}, release},
		"clean-up is switched off": {func(in *csv.Input) {
			in.Config.Cleanup.Disabled = true
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role}
		}, release},
		"the namespace goes: no drain": {func(in *csv.Input) {
			in.Deletion.Namespaces.Items[0].DeletionTimestamp = ago(time.Second)
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role}
		}, []string{"delete ClusterRole role"}},
		"the namespace goes: not held for long": {func(in *csv.Input) {
			in.Deletion.Namespaces.Items[0].DeletionTimestamp = ago(time.Second)
			in.ClusterServiceVersion.DeletionTimestamp = ago(30 * time.Second)
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role}
		}, release},
		"a name that is too long has labelled nothing": {func(in *csv.Input) {
			in.ClusterServiceVersion.Name = "a234567890123456789012345678901234567890123456789012345678901234"
		}, []string{"update ClusterServiceVersion a234567890123456789012345678901234567890123456789012345678901234"}},
		"what was not read holds":                      {func(in *csv.Input) { in.Deletion.ClusterObjects = olmcore.Observed[olmcore.Object]{} }, nil},
		"without the finalizer there is nothing to do": {func(in *csv.Input) { in.ClusterServiceVersion.Finalizers = []string{"other"} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving(t)
			c.change(&in)
			require.Equal(t, c.want, does(t, in))
		})
	}
}

func TestOnlyOurOwnObjectsAreDeleted(t *testing.T) {
	for name, change := range map[string]func(m *metav1.ObjectMeta){
		"another owner":             func(m *metav1.ObjectMeta) { m.Labels["olm.owner"] = "other" },
		"another namespace":         func(m *metav1.ObjectMeta) { m.Labels["olm.owner.namespace"] = "other" },
		"another kind of owner":     func(m *metav1.ObjectMeta) { m.Labels["olm.owner.kind"] = "OperatorGroup" },
		"a label is missing":        func(m *metav1.ObjectMeta) { delete(m.Labels, "olm.owner.kind") },
		"another incarnation":       func(m *metav1.ObjectMeta) { m.Labels["olm.owner.uid"] = "before" },
		"younger than the deletion": func(m *metav1.ObjectMeta) { m.CreationTimestamp = *ago(9 * time.Second) },
		"owned by another CSV": func(m *metav1.ObjectMeta) {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", UID: "x"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving(t)
			m := ours("role")
			change(&m)
			in.Deletion.ClusterObjects.Items = []olmcore.Object{&rbacv1.ClusterRole{ObjectMeta: m}}
			require.Equal(t, release, does(t, in))
		})
	}
}

func TestOperands(t *testing.T) {
	answer := func(in *csv.Input, items ...olmcore.Object) {
		in.Deletion.Operands = map[schema.GroupKind]olmcore.Observed[olmcore.Object]{{Group: "example.com", Kind: "Cool"}: olmcore.Found(items...)}
	}
	other := func(in *csv.Input) *v1alpha1.ClusterServiceVersion {
		p := operator("other.v1", 1)
		p.Namespace, p.Annotations = "elsewhere", nil
		in.Deletion.Peers.Items = append(in.Deletion.Peers.Items, p)
		return p
	}
	for name, c := range map[string]struct {
		change func(in *csv.Input)
		want   []string
	}{
		"they are deleted":        {func(*csv.Input) {}, []string{"delete Cool one", "delete Cool two"}},
		"clean-up is not enabled": {func(in *csv.Input) { in.ClusterServiceVersion.Spec.Cleanup.Enabled = false }, release},
		"they are skipped by annotation": {func(in *csv.Input) {
			in.ClusterServiceVersion.Annotations[cleanup.AnnotationCleanup] = cleanup.OverrideSkipOperands
		}, release},
		"a newer version goes on":  {func(in *csv.Input) { successorOf(in, pending) }, release},
		"the version was replaced": {func(in *csv.Input) { in.ClusterServiceVersion.Status.Reason = "Replaced" }, release},
		"a Subscription still has it": {func(in *csv.Input) {
			in.Subscriptions.Items = []*v1alpha1.Subscription{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Status: v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1"}}}
		}, release},
		"another operator owns the CRD": {func(in *csv.Input) { other(in) }, release},
		"another operator requires it": {func(in *csv.Input) {
			d := &other(in).Spec.CustomResourceDefinitions
			d.Owned, d.Required = nil, d.Owned
		}, release},
		"the other operator is leaving too": {func(in *csv.Input) { other(in).DeletionTimestamp = ago(0) }, []string{"delete Cool one", "delete Cool two"}},
		"the CRD is being deleted":          {func(in *csv.Input) { in.CustomResourceDefinitions.Items[0].DeletionTimestamp = ago(0) }, release},
		"the CRD is gone":                   {func(in *csv.Input) { in.CustomResourceDefinitions.Items = nil }, release},
		"the targets are unknown":           {func(in *csv.Input) { delete(in.ClusterServiceVersion.Annotations, "olm.targetNamespaces") }, release},
		"the kind is cluster-scoped":        {func(in *csv.Input) { in.CustomResourceDefinitions.Items[0].Spec.Scope = apiextensionsv1.ClusterScoped }, release},
		"they lie in other namespaces": {func(in *csv.Input) {
			o := cool("one")
			o.SetNamespace("elsewhere")
			answer(in, o)
		}, release},
		"one is kept": {func(in *csv.Input) {
			o := cool("one")
			o.SetAnnotations(map[string]string{cleanup.AnnotationKeep: ""})
			answer(in, o, cool("two"))
		}, []string{"delete Cool two"}},
		"one has a finalizer, and its operator is on its way out": {func(in *csv.Input) {
			in.Deployments.Items[0].DeletionTimestamp = ago(time.Second)
			answer(in, cool("one", "example.com/x"), cool("two"))
		}, []string{"delete Cool two"}},
		"one has a finalizer, and another operator runs": {func(in *csv.Input) {
			in.Deployments.Items[0].Labels["olm.owner"] = "other.v1"
			answer(in, cool("one", "example.com/x"), cool("two"))
		}, []string{"delete Cool two"}},
		"one is kept, but on its way out": {func(in *csv.Input) {
			o := cool("one", "example.com/x")
			o.SetAnnotations(map[string]string{cleanup.AnnotationKeep: ""})
			o.SetDeletionTimestamp(ago(time.Second))
			answer(in, o)
		}, nil},
		"one has a finalizer and nobody to remove it": {func(in *csv.Input) {
			in.Deployments.Items[0].Status.Conditions = []appsv1.DeploymentCondition{}
			answer(in, cool("one", "example.com/x"), cool("two"))
		}, []string{"delete Cool two"}},
		"one is Terminating already": {func(in *csv.Input) {
			o := cool("one", "example.com/x")
			o.SetDeletionTimestamp(ago(time.Hour))
			answer(in, o)
		}, nil},
		"nobody knows whether the operator runs": {func(in *csv.Input) { in.Deployments = olmcore.Observed[*appsv1.Deployment]{} }, nil},
		"nobody knows who subscribed":            {func(in *csv.Input) { in.Subscriptions = olmcore.Observed[*v1alpha1.Subscription]{} }, nil},
		"nobody knows who else owns the CRD":     {func(in *csv.Input) { in.Deletion.Peers = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{} }, nil},
		"nobody knows the CRD": {func(in *csv.Input) {
			in.CustomResourceDefinitions = olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]{}
		}, nil},
		"the one after the next version goes on": {func(in *csv.Input) {
			next := successorOf(in, succeeded)
			next.DeletionTimestamp = ago(time.Second)
			last := operator("cool.v3", 3)
			last.Spec.Replaces = next.Name
			in.Neighbours.Items = append(in.Neighbours.Items, last)
			for _, n := range in.Neighbours.Items {
				n.Spec.CustomResourceDefinitions.Owned = nil
			}
		}, release},
		"their time is over": {func(in *csv.Input) { in.Config.Cleanup.OperandTimeout = 10 * time.Second }, release},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving(t)
			in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
			answer(&in, cool("two"), cool("one"))
			c.change(&in)
			require.Equal(t, c.want, does(t, in))
		})
	}
	in := leaving(t)
	in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
	out, err := reconcileCleanup(in)
	require.NoError(t, err)
	require.Equal(t, []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Cool"}}, out.Operands, "an unread kind is asked for")
	require.Empty(t, out.Actions)
}

func TestWhatAFailedDeleteMeans(t *testing.T) {
	for name, c := range map[string]struct {
		class   olmcore.ErrorClass
		count   int
		first   time.Duration
		want    []string
		requeue time.Duration
	}{
		"it is gone":                        {olmcore.Gone, 1, 0, release, 0},
		"its kind is not served":            {olmcore.NoMatch, 1, 0, release, 0},
		"it will never be accepted":         {olmcore.Invalid, 1, 0, release, 0},
		"it changed meanwhile":              {olmcore.Conflict, 3, 0, nil, time.Second},
		"the API server was busy":           {olmcore.Transient, 3, 0, nil, 4 * time.Second},
		"the API server is busy for long":   {olmcore.Transient, 90, time.Hour, nil, 15 * time.Second},
		"we may not":                        {olmcore.Forbidden, 2, 0, nil, 2 * time.Second},
		"we may not, and never will":        {olmcore.Forbidden, 20, 10 * time.Minute, release, 0},
		"a webhook forbids it":              {olmcore.Webhook, 1, 0, nil, time.Second},
		"an unknown class is a busy server": {"Odd", 1, 0, nil, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving(t)
			in.Deployments.Items = nil
			in.ClusterServiceVersion.DeletionTimestamp = ago(time.Hour)
			m := ours("role")
			m.CreationTimestamp = *ago(2 * time.Hour)
			role := &rbacv1.ClusterRole{ObjectMeta: m}
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role}
			in.LastRun = olmcore.LastResults{olmcore.KeyOf(role): {Class: c.class, Message: "no", Count: c.count, First: now.Add(-c.first), Last: now}}
			require.Equal(t, c.want, does(t, in))
			out, err := reconcileCleanup(in)
			require.NoError(t, err)
			require.Equal(t, c.requeue, out.RequeueAfter)
		})
	}
}

func TestTheModeDoesNotChangeThroughOurOwnStatus(t *testing.T) {
	for name, change := range map[string]func(in *csv.Input){
		"uninstall":  func(*csv.Input) {},
		"superseded": func(in *csv.Input) { hold(in.ClusterServiceVersion, deleting, "Replaced", "", time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving(t)
			in.Deletion.ClusterObjects.Items = []olmcore.Object{&rbacv1.ClusterRole{ObjectMeta: ours("role")}}
			change(&in)
			before := assess(t, in)
			out, err := reconcileCleanup(in)
			require.NoError(t, err)
			after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
			require.True(t, ok)
			require.Len(t, after.Status.Cleanup.PendingDeletion, 1)
			in.ClusterServiceVersion = after
			require.Equal(t, before.Mode, assess(t, in).Mode)
			require.Equal(t, cleanup.StageWorkload, assess(t, in).Stage)
		})
	}
}
