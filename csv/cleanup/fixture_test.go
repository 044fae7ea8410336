// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"slices"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

type reason = v1alpha1.ConditionReason

const (
	pending   = csvtest.Pending
	succeeded = csvtest.Succeeded
	replacing = csvtest.Replacing
	deleting  = csvtest.Deleting
)

var (
	now, ago                     = csvtest.Now, csvtest.Ago
	operator, hold, namespace    = csvtest.Operator, csvtest.Hold, csvtest.Namespace
	ours, ownerCSV, cool, copied = csvtest.Ours, csvtest.OwnedBy, csvtest.Cool, csvtest.Copied
	ourConversion, delegator     = csvtest.Conversion, csvtest.Delegator
	printRecords                 = csvtest.PrintRecords

	coolKind = schema.GroupKind{Group: "example.com", Kind: "Cool"}
	release  = []string{"update ClusterServiceVersion cool.v1"}
)

// leaving is a healthy operator that was deleted ten seconds ago.
func leaving() cleanup.Input {
	c := operator("cool.v1", 1)
	hold(c, succeeded, "InstallSucceeded", "install strategy completed with no errors", time.Hour)
	c.DeletionTimestamp = ago(10 * time.Second)
	d := &appsv1.Deployment{ObjectMeta: ours("cool")}
	d.Namespace, d.OwnerReferences = "ns", []metav1.OwnerReference{olmcore.OwnerReferenceTo(c)}
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "cools.example.com", UID: "crd", ResourceVersion: "7", Annotations: map[string]string{"operatorframework.io/installed-alongside-1": "ns/cool.v1"},
	}}
	crd.Spec.Group, crd.Spec.Names.Kind, crd.Spec.Scope = "example.com", "Cool", apiextensionsv1.NamespaceScoped
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}}
	return cleanup.Input{
		Now: now, ClusterServiceVersion: c,
		OperatorGroups: olmcore.Found(csvtest.Group()),
		Neighbours:     olmcore.Found[*v1alpha1.ClusterServiceVersion](), Subscriptions: olmcore.Found[*v1alpha1.Subscription](),
		CustomResourceDefinitions: olmcore.Found(crd), Deployments: olmcore.Found(d),
		Deletion: csvtest.Deletion(),
	}
}

// successorOf adds a version that replaces the one that is being deleted.
func successorOf(in *cleanup.Input, phase v1alpha1.ClusterServiceVersionPhase) *v1alpha1.ClusterServiceVersion {
	s := operator("cool.v2", 2)
	s.Spec.Replaces = in.ClusterServiceVersion.Name
	hold(s, phase, "SomeReason", "", time.Minute)
	in.Neighbours.Items = append(in.Neighbours.Items, s)
	return s
}

// reconciled is cleanup.Reconcile of a valid Input.
func reconciled(t require.TestingT, in cleanup.Input) cleanup.Outcome {
	out, err := cleanup.Reconcile(in)
	require.NoError(t, err)
	return out
}

func reconcile(in cleanup.Input) (olmcore.Result, error) {
	out, err := cleanup.Reconcile(in)
	return out.Result, err
}

// applied is what an Input is after actions ran, and nothing else happened: what is deleted is gone. gone says that the
// version itself is.
func applied(t require.TestingT, in cleanup.Input, actions []olmcore.Action) (after cleanup.Input, gone bool) {
	for _, action := range actions {
		var written olmcore.Object
		switch a := action.(type) {
		case olmcore.Update:
			written = a.After
		case olmcore.UpdateStatus:
			written = a.After
		case olmcore.Delete:
			take(&in, a.Target)
			continue
		}
		switch o := written.(type) {
		case *v1alpha1.ClusterServiceVersion:
			in.ClusterServiceVersion = o
		case *apiextensionsv1.CustomResourceDefinition:
			in.CustomResourceDefinitions = olmcore.Found(o)
		default:
			require.Failf(t, "a cleanup writes no such object", "%T", action)
		}
	}
	return in, len(in.ClusterServiceVersion.Finalizers) == 0
}

// take removes an object from the lists of what can be deleted.
func take(in *cleanup.Input, target olmcore.Ref) {
	in.Deployments = csvtest.Without(in.Deployments, target)
	csvtest.Delete(&in.Deletion, target)
}

// versionOf is the version that an action writes.
func versionOf(a olmcore.Action) (*v1alpha1.ClusterServiceVersion, bool) {
	u, ok := a.(olmcore.Update)
	if !ok {
		return nil, false
	}
	c, ok := u.After.(*v1alpha1.ClusterServiceVersion)
	return c, ok
}

// releases reports whether a result takes the finalizer off, which is then all it does.
func releases(t require.TestingT, out cleanup.Outcome) bool {
	for _, a := range out.Actions {
		if c, ok := versionOf(a); ok && !slices.Contains(c.Finalizers, cleanup.Finalizer) {
			require.Len(t, out.Actions, 1)
			return true
		}
	}
	return false
}

// cleanupModes are the ways in which a CSV can be deleted.
var cleanupModes = map[cleanup.Mode]func(in *cleanup.Input){
	cleanup.ModeUninstall:     func(*cleanup.Input) {},
	cleanup.ModeSuperseded:    func(in *cleanup.Input) { hold(in.ClusterServiceVersion, deleting, "Replaced", "", time.Hour) },
	cleanup.ModeNamespaceGone: func(in *cleanup.Input) { in.Deletion.Namespaces.Items[0].Status.Phase = corev1.NamespaceTerminating },
	cleanup.ModeOrphan: func(in *cleanup.Input) {
		in.ClusterServiceVersion.Finalizers = append(in.ClusterServiceVersion.Finalizers, "orphan")
	},
}

func label(key, value string) func(o olmcore.Object) {
	return func(o olmcore.Object) {
		labels, _ := olmcore.MergeLabels(o.GetLabels(), map[string]string{key: value})
		o.SetLabels(labels)
	}
}

// finish runs a cleanup to its end; nothing fails.
func finish(t require.TestingT, in cleanup.Input) cleanup.Input {
	for range 8 {
		out := reconciled(t, in)
		done := releases(t, out)
		in, _ = applied(t, in, out.Actions)
		if done {
			return in
		}
	}
	require.FailNow(t, "still held after 8 calls")
	return in
}

// full gives a cleanup work in every stage.
func full(in *cleanup.Input) {
	in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
	in.Deletion.ClusterObjects = olmcore.Found(belongings()...)
	in.Deletion.WellKnown, in.Deletion.Copies = olmcore.Found[olmcore.Object](delegator()), olmcore.Found(copied("elsewhere"))
	in.Deletion.Operands = nil
	in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{GenerateName: "w", DeploymentName: "cool", Type: v1alpha1.ConversionWebhook}}
	in.CustomResourceDefinitions.Items[0].Spec.Conversion = ourConversion()
	in.Deletion.Operands = operandsOf(cool("one"), cool("two", "example.com/x"))
}

// left lists what a cleanup did not delete.
func left(in cleanup.Input) []string {
	names := []string{}
	for _, list := range []olmcore.Observed[olmcore.Object]{in.Deletion.ClusterObjects, in.Deletion.WellKnown, in.Deletion.Operands[coolKind]} {
		for _, o := range list.Items {
			names = append(names, olmcore.KeyOf(o).String())
		}
	}
	for _, d := range in.Deployments.Items {
		names = append(names, olmcore.KeyOf(d).String())
	}
	for _, c := range in.Deletion.Copies.Items {
		names = append(names, olmcore.KeyOf(c).String())
	}
	for _, crd := range in.CustomResourceDefinitions.Items {
		if crd.Spec.Conversion != nil && crd.Spec.Conversion.Webhook != nil {
			names = append(names, "conversion of "+crd.Name)
		}
	}
	slices.Sort(names)
	return names
}

func operandsOf(items ...olmcore.Object) map[schema.GroupKind]olmcore.Observed[olmcore.Object] {
	return map[schema.GroupKind]olmcore.Observed[olmcore.Object]{coolKind: olmcore.Found(items...)}
}

// belongings are an object of each sort that carries the owner labels of input's CSV.
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

// does lists what is written but for the status.
func does(t testing.TB, in cleanup.Input) []string {
	t.Helper()
	return csvtest.Writes(reconciled(t, in).Actions)
}

func deletions(out cleanup.Outcome) []string { return csvtest.Deletions(out.Actions) }
