// SPDX-License-Identifier: Apache-2.0

// Package sample has the objects that the tests of package subscription and of those below it are made of. Only tests
// import it.
package sample

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
)

const (
	Namespace = "ops"
	LabelKey  = "operators.coreos.com/etcd.ops"
)

// Epoch is second 0 of every test; Now is a minute later.
var (
	Epoch = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	Now   = Epoch.Add(time.Minute)
)

func Second(n int) metav1.Time   { return metav1.NewTime(Epoch.Add(time.Duration(n) * time.Second)) }
func EpochPlus(n int) time.Time  { return Second(n).Time }
func Secondp(n int) *metav1.Time { return new(Second(n)) }

func Meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: Namespace, Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "7", Generation: 1, CreationTimestamp: Second(0),
	}
}

// Sub returns a labelled Subscription to package etcd, last updated at second 5, without a plan.
func Sub(name string, change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
	s := &v1alpha1.Subscription{ObjectMeta: Meta(name), Spec: &v1alpha1.SubscriptionSpec{
		CatalogSource: "cool", CatalogSourceNamespace: "olm", Package: "etcd", Channel: "stable",
	}}
	s.Labels = map[string]string{LabelKey: ""}
	s.Status.LastUpdated = Second(5)
	for _, f := range change {
		f(s)
	}
	return s
}

// Follows makes a Subscription refer to the plan p and wait for the CSV.
func Follows(p, csv string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Status.InstallPlanRef = RefTo(p)
		s.Status.Install = v1alpha1.NewInstallPlanReference(s.Status.InstallPlanRef)
		s.Status.CurrentCSV, s.Status.State, s.Status.InstallPlanGeneration = csv, v1alpha1.SubscriptionStateUpgradePending, 1
	}
}

// Installed makes a Subscription have installed its current CSV.
func Installed(s *v1alpha1.Subscription) {
	s.Status.InstalledCSV, s.Status.State = s.Status.CurrentCSV, v1alpha1.SubscriptionStateAtLatest
}

func RefTo(plan string) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan", Namespace: Namespace, Name: plan,
		UID: types.UID(plan + "-uid"), ResourceVersion: "7",
	}
}

func Pending(reason string, at int) func(*v1alpha1.Subscription) {
	return WithCondition(v1alpha1.SubscriptionInstallPlanPending, reason, "", at)
}

func WithCondition(t v1alpha1.SubscriptionConditionType, reason, message string, at int) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Status.Conditions = append(s.Status.Conditions, Condition(t, reason, message, at))
	}
}

func Condition(t v1alpha1.SubscriptionConditionType, reason, message string, at int) v1alpha1.SubscriptionCondition {
	return v1alpha1.SubscriptionCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: Secondp(at)}
}

// Plan returns an Automatic plan with one step, created at second 2, that the Subscription "a" owns.
func Plan(name string, phase v1alpha1.InstallPlanPhase, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
	p := &v1alpha1.InstallPlan{ObjectMeta: Meta(name)}
	p.CreationTimestamp = Second(2)
	p.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(Sub("a"))}
	p.Spec = v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalAutomatic, Approved: true, Generation: 1, ClusterServiceVersionNames: []string{"etcd.v1"}}
	p.Status.Phase = phase
	p.Status.Plan = []*v1alpha1.Step{{Resolving: "etcd.v1"}}
	for _, f := range change {
		f(p)
	}
	return p
}

func Manual(generation int64) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) {
		p.Spec.Approval, p.Spec.Approved, p.Generation = v1alpha1.ApprovalManual, generation != 1, generation
	}
}

func Started(at int) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) { p.Status.StartTime = Secondp(at) }
}

func Done(at int) func(*v1alpha1.InstallPlan) {
	return InstalledIs(corev1.ConditionTrue, "", "", at)
}

func Failed(at int) func(*v1alpha1.InstallPlan) {
	return InstalledIs(corev1.ConditionFalse, v1alpha1.InstallPlanReasonComponentFailed, "step broke", at)
}

func InstalledIs(status corev1.ConditionStatus, reason v1alpha1.InstallPlanConditionReason, message string, at int) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) {
		p.Status.Conditions = []v1alpha1.InstallPlanCondition{{
			Type: v1alpha1.InstallPlanInstalled, Status: status, Reason: reason, Message: message,
			LastUpdateTime: Secondp(at), LastTransitionTime: Secondp(at),
		}}
	}
}

func CSV(name string, change ...func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: Meta(name)}
	c.Labels = map[string]string{LabelKey: ""}
	c.Status.Phase = v1alpha1.CSVPhaseSucceeded
	for _, f := range change {
		f(c)
	}
	return c
}

// Input puts objects into an Input with one OperatorGroup. Objects of other kinds are components.
func Input(objects ...olmcore.Object) subscription.Input {
	in := subscription.Input{
		Now: Now, Namespace: Namespace, OperatorGroups: olmcore.Found(&operatorsv1.OperatorGroup{ObjectMeta: Meta("group")}),
		Subscriptions: olmcore.Found[*v1alpha1.Subscription](), InstallPlans: olmcore.Found[*v1alpha1.InstallPlan](),
		ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.Subscription:
			in.Subscriptions.Items = append(in.Subscriptions.Items, o)
		case *v1alpha1.InstallPlan:
			in.InstallPlans.Items = append(in.InstallPlans.Items, o)
		case *v1alpha1.ClusterServiceVersion:
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, o)
		default:
			in.Components = append(in.Components, o)
		}
	}
	return in
}

// Answered adds the answer that nothing has to change.
func Answered(in subscription.Input) subscription.Input {
	in.Resolution = &subscription.Resolved{Resolution: ResolutionOf(in)}
	return in
}

// ResolutionOf is a resolution of what is there, without changes.
func ResolutionOf(in subscription.Input) olmcore.Resolution {
	var r olmcore.Resolution
	for _, s := range in.Subscriptions.Items {
		r.Observed = append(r.Observed, olmcore.FingerprintOf(s))
		r.Decisions = append(r.Decisions, olmcore.SubscriptionDecision{Name: s.Name, CurrentCSV: s.Status.CurrentCSV})
	}
	return r
}

func Catalog(namespace, name string, healthy bool) *v1alpha1.CatalogSource {
	c := &v1alpha1.CatalogSource{ObjectMeta: Meta(name)}
	c.Namespace = namespace
	c.Status.GRPCConnectionState = &v1alpha1.GRPCConnectionState{LastObservedState: "CONNECTING"}
	if healthy {
		c.Status.GRPCConnectionState.LastObservedState = "READY"
	}
	return c
}

// CarryOut puts what an Outcome asks for into an Input.
func CarryOut(in *subscription.Input, out subscription.Outcome) {
	for uid, h := range out.Histories {
		in.Histories[uid] = h
	}
	for _, a := range out.Actions {
		switch a := a.(type) {
		case olmcore.Delete:
			in.InstallPlans.Items = slices.DeleteFunc(slices.Clone(in.InstallPlans.Items), func(p *v1alpha1.InstallPlan) bool { return p.UID == a.Target.UID })
		case olmcore.UpdateStatus:
			put(in, a.After)
		case olmcore.Update:
			put(in, a.After)
		}
	}
}

func put(in *subscription.Input, after olmcore.Object) {
	replace(in.Subscriptions.Items, after)
	in.InstallPlans.Items = slices.Clone(in.InstallPlans.Items)
	replace(in.InstallPlans.Items, after)
	replace(in.ClusterServiceVersions.Items, after)
}

func replace[O olmcore.Object](list []O, after olmcore.Object) {
	for i, o := range list {
		if o.GetUID() == after.GetUID() {
			list[i] = after.(O)
		}
	}
}

// Vault returns a Subscription to another package.
func Vault(name string, change ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
	return Sub(name, append([]func(*v1alpha1.Subscription){func(s *v1alpha1.Subscription) {
		s.Spec.Package, s.Labels = "vault", map[string]string{"operators.coreos.com/vault.ops": ""}
	}}, change...)...)
}

// Empty is a plan that was created and has no content yet.
func Empty(p *v1alpha1.InstallPlan) { p.Status = v1alpha1.InstallPlanStatus{} }

// Leaving is a Subscription that is being deleted.
func Leaving(at int) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.DeletionTimestamp, s.Finalizers = Secondp(at), []string{"mine", subscription.Finalizer}
	}
}

func Lookup(t v1alpha1.BundleLookupConditionType, reason, message string) v1alpha1.BundleLookup {
	return v1alpha1.BundleLookup{Path: "quay.io/etcd:1", Identifier: "etcd.v1", Conditions: []v1alpha1.BundleLookupCondition{
		{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message},
	}}
}

func Reconcile(t require.TestingT, in subscription.Input) subscription.Outcome {
	out, err := subscription.Reconcile(in)
	require.NoError(t, err)
	return out
}

// HealthOf returns the health of the first Subscription by name.
func HealthOf(t require.TestingT, in subscription.Input) health.Health {
	all, err := health.Assess(health.Input{Input: in})
	require.NoError(t, err)
	return all[slices.Min(slices.Collect(maps.Keys(all)))]
}

// StatusOf returns the status that an Outcome leaves a Subscription with.
func StatusOf(t require.TestingT, in subscription.Input, out subscription.Outcome, name string) v1alpha1.SubscriptionStatus {
	for _, a := range out.Actions {
		if u, ok := a.(olmcore.UpdateStatus); ok && u.Target.Name == name {
			return u.After.(*v1alpha1.Subscription).Status
		}
	}
	i := slices.IndexFunc(in.Subscriptions.Items, func(s *v1alpha1.Subscription) bool { return s.Name == name })
	require.GreaterOrEqual(t, i, 0, "no Subscription "+name)
	return in.Subscriptions.Items[i].Status
}

// Reasons prints the reasons of the diagnostics but for gaps.
func Reasons(r olmcore.Result) string {
	var all []string
	for _, d := range r.Diagnostics {
		if d.Reason != olmcore.ReasonHistoryGap {
			all = append(all, d.Reason)
		}
	}
	return strings.Join(all, " ")
}

// Words prints the actions of a result: verb, kind and name.
func Words(r olmcore.Result) string {
	var all []string
	for _, a := range r.Actions {
		verb, ref, _ := a.Describe()
		all = append(all, string(verb)+" "+ref.Kind+" "+ref.Name)
	}
	return strings.Join(all, ", ")
}

// Failing is a Reader whose reads fail once there are none Left.
type Failing struct {
	olmcore.Reader
	Left *int
}

var ErrRead = errors.New("connection refused")

func (f Failing) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if *f.Left--; *f.Left < 0 {
		return nil, ErrRead
	}
	return f.Reader.Get(ctx, gvk, namespace, name)
}

func (f Failing) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if *f.Left--; *f.Left < 0 {
		return nil, ErrRead
	}
	return f.Reader.List(ctx, gvk, namespace, selector)
}
