// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
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
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/internal/csvtest"
	_ "github.com/olmcore/olm/internal/seeded"
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

// leaving returns a healthy operator that was deleted ten seconds ago.
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

// applied returns an Input after actions have run. Deleted objects no longer exist. gone is true if the version itself
// was deleted.
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

// take removes a deleted object from the lists.
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

// releases reports whether a result removes the finalizer. Then it must contain no other action.
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
		labels, _ := olmcore.MergeMaps(o.GetLabels(), map[string]string{key: value})
		o.SetLabels(labels)
	}
}

// finish runs a cleanup to its end without failures.
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

// full adds objects for every stage of a cleanup.
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

// belongings returns one object of each kind with the owner labels of the CSV of input.
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

// does lists all writes except those of the status.
func does(t testing.TB, in cleanup.Input) []string {
	t.Helper()
	return csvtest.Writes(reconciled(t, in).Actions)
}

func deletions(out cleanup.Outcome) []string { return csvtest.Deletions(out.Actions) }

var phases = []v1alpha1.ClusterServiceVersionPhase{v1alpha1.CSVPhaseNone, pending, v1alpha1.CSVPhaseInstalling, succeeded, v1alpha1.CSVPhaseFailed, replacing, deleting}

func phaseOf(t *rapid.T, label string) v1alpha1.ClusterServiceVersionPhase {
	return rapid.SampledFrom(phases).Draw(t, label)
}

// anyPast draws a version in any phase and with any history, and any other versions of its namespace.
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

// dying draws the world of a CSV that is being deleted, with some of the objects that a cleanup deletes.
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

// withoutUnread removes the items of lists that were not read.
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

// aged gives an object one of the states that a cleanup can observe: existing, Terminating for some time, or rejected.
func aged(t *rapid.T, in *cleanup.Input, o olmcore.Object, i int) olmcore.Object {
	before := in.ClusterServiceVersion.DeletionTimestamp.Time
	o.SetCreationTimestamp(metav1.NewTime(before.Add(-time.Hour)))
	switch rapid.IntRange(0, 7).Draw(t, fmt.Sprint("state ", i)) {
	case 0:
		o.SetDeletionTimestamp(ago(time.Duration(rapid.SampledFrom([]int{0, 59, 299, 301}).Draw(t, "for")) * time.Second))
		o.SetFinalizers([]string{"example.com/x"})
	case 1:
		labels, _ := olmcore.MergeMaps(o.GetLabels(), map[string]string{"olm.owner.uid": "another"})
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
