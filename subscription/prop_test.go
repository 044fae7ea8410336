// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
)

func vocabulary(hostile bool) gen.Vocabulary {
	return gen.Vocabulary{
		Now: now, Namespace: ns, Names: []string{"a", "b", "p", "etcd.v1"}, Hostile: hostile,
		Words: map[string][]string{
			"phase":      {"", "RequiresApproval", "Installing", "Complete", "Failed", "Planning", "Melting", "Succeeded"},
			"kind":       {"InstallPlan", "Subscription", "ClusterServiceVersion", ""},
			"apiversion": {"operators.coreos.com/v1alpha1"},
			"type":       {"InstallPlanPending", "InstallPlanFailed", "InstallPlanMissing", "ResolutionFailed", "Installed", "BundleLookupPending", "BundleLookupFailed", "Foreign", "BundleUnpacking", "CatalogSourcesUnhealthy", "Deprecated"},
			"status":     {"True", "False", "Unknown"},
			"state":      {"", "UpgradePending", "AtLatestKnown", "UpgradeFailed"},
			"reason":     {"", "Installing", "RequiresApproval", "InstallPlanNotYetReconciled", "InstallComponentFailed", "Copied"},
			"approval":   {"Automatic", "Manual"},
			"laststage":  {"NoPlan", "NotYetReconciled", "RequiresApproval", "Installing", "Complete", "Failed", "Missing", "Unknown"},
			"published":  {"", "NoPlan", "Installing", "Complete", "Failed", "Missing"},
			"uid":        {"a-uid", "b-uid", "p-uid", "1", "2"},
			"":           {"", "etcd", "etcd.v1", "a", "p", "operators.coreos.com/etcd.ops"},
		},
		Objects: []olmcore.Object{&corev1.ServiceAccount{ObjectMeta: meta("sa")}, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "x", ResourceVersion: "1"}}},
	}
}

// drawInput draws an Input whose Config is mostly valid.
func drawInput(t *rapid.T, hostile bool) subscription.Input {
	in := gen.Value[subscription.Input](vocabulary(hostile)).Draw(t, "input")
	for _, c := range in.ClusterServiceVersions.Items {
		if c != nil { // the rest is not looked at, and what is drawn for it does not survive JSON
			c.Spec = v1alpha1.ClusterServiceVersionSpec{CustomResourceDefinitions: c.Spec.CustomResourceDefinitions}
			c.Spec.CustomResourceDefinitions.Required = nil
			c.Status = v1alpha1.ClusterServiceVersionStatus{Phase: c.Status.Phase, Reason: c.Status.Reason}
		}
	}
	for _, s := range in.Subscriptions.Items {
		if s != nil { // a pointer to no time is no time once it was stored
			for i := range s.Status.Conditions {
				c := &s.Status.Conditions[i]
				c.LastTransitionTime, c.LastHeartbeatTime = timeOrNil(c.LastTransitionTime), timeOrNil(c.LastHeartbeatTime)
			}
			for i := range s.Status.CatalogHealth {
				s.Status.CatalogHealth[i].LastUpdated = timeOrNil(s.Status.CatalogHealth[i].LastUpdated)
			}
		}
	}
	if !hostile {
		in.Now, in.Namespace = now, ns
		in.OperatorGroups.Items = []*operatorsv1.OperatorGroup{{ObjectMeta: meta("group")}}
		in.Subscriptions.Complete, in.InstallPlans.Complete, in.ClusterServiceVersions.Complete, in.OperatorGroups.Complete = true, true, true, true
		if in.Catalogs != nil {
			in.Catalogs.Sources.Complete = true
		}
		in.Config = subscription.Config{ReinstallMissingCSV: in.Config.ReinstallMissingCSV}
		if in.Resolution != nil {
			in.Resolution.Attempts = max(0, in.Resolution.Attempts)
		}
	}
	return in
}

func timeOrNil(t *metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return t
}

func TestLawsHoldForAnyInput(t *testing.T) {
	accepted := 0
	for _, hostile := range []bool{false, true} {
		rapid.Check(t, func(t *rapid.T) {
			in := drawInput(t, hostile)
			if _, err := subscription.Reconcile(in); err == nil {
				accepted++
			}
			require.NoError(t, invariant.Laws(result, in))
			checkSafety(t, in)
		})
	}
	require.NotZero(t, accepted)
}

// drawNamespace draws a realistic namespace: Subscriptions in any state, whose plans and CSVs may exist or not.
func drawNamespace(t *rapid.T) subscription.Input {
	in := inputOf()
	plans := map[string]*v1alpha1.InstallPlan{}
	for _, name := range []string{"p", "q"} {
		if rapid.IntRange(0, 3).Draw(t, "plan "+name) > 0 {
			all := walk(t, true)
			p := rapid.SampledFrom(all).Draw(t, "version").plan.DeepCopy()
			p.Name, p.UID = name, types.UID(name+"-uid")
			plans[name] = p
			in.InstallPlans.Items = append(in.InstallPlans.Items, p)
		}
	}
	for _, name := range []string{"etcd.v1", "vault.v1"} {
		if rapid.Bool().Draw(t, "csv "+name) {
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, newCSV(name))
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		if !rapid.Bool().Draw(t, "subscription "+name) {
			continue
		}
		s := newSub(name)
		if rapid.Bool().Draw(t, "refers") {
			follows(rapid.SampledFrom([]string{"p", "q"}).Draw(t, "to"), rapid.SampledFrom([]string{"etcd.v1", "vault.v1"}).Draw(t, "csv"))(s)
		}
		if rapid.Bool().Draw(t, "installed") {
			installed(s)
		}
		switch rapid.IntRange(0, 3).Draw(t, "condition") {
		case 1:
			pending(rapid.SampledFrom([]string{"Installing", "RequiresApproval", "InstallPlanNotYetReconciled"}).Draw(t, "reason"), rapid.IntRange(3, 50).Draw(t, "at"))(s)
		case 2:
			withCondition(v1alpha1.SubscriptionInstallPlanMissing, "ReferencedInstallPlanNotFound", "", 50)(s)
		}
		if rapid.Bool().Draw(t, "generated") {
			s.Annotations = map[string]string{"olm.generated-by": "p"}
			s.Spec.StartingCSV = "etcd.v1"
		}
		s.Status.LastUpdated = second(rapid.IntRange(0, 70).Draw(t, "updated"))
		in.Subscriptions.Items = append(in.Subscriptions.Items, s)
	}
	if rapid.Bool().Draw(t, "remembers") {
		in.Histories = map[types.UID]subscription.History{}
	}
	in.Config.ReinstallMissingCSV = rapid.Bool().Draw(t, "reinstall")
	if rapid.Bool().Draw(t, "catalogs") {
		in.Catalogs = sources()
		for _, name := range []string{"cool", "other"} {
			if rapid.Bool().Draw(t, "catalog "+name) {
				in.Catalogs.Sources.Items = append(in.Catalogs.Sources.Items, newCatalog("olm", name, rapid.Bool().Draw(t, "healthy")))
			}
		}
		if rapid.Bool().Draw(t, "deprecated") {
			in.Catalogs.Entries = []subscription.Entry{entryOf("etcd.v1", nil, new(""), new("old"))}
		}
	}
	if rapid.Bool().Draw(t, "answered") {
		in.Resolution = bring(in, "etcd.v1", "a", "b")
		in.Resolution.At = second(rapid.IntRange(0, 60).Draw(t, "resolved")).Time
		if rapid.IntRange(0, 3).Draw(t, "failed") == 0 {
			in.Resolution.Attempts = rapid.IntRange(0, 20).Draw(t, "attempts")
			in.Resolution.Resolution.Failure = &olmcore.ResolutionFailure{
				Unsatisfiable: rapid.Bool().Draw(t, "unsatisfiable"), Transient: rapid.Bool().Draw(t, "transient"), Message: "no",
			}
		}
		drawParts(t, &in)
	}
	return in
}

// drawParts may divide the answer of a namespace into parts: a and b wait for one plan, or b waits for its own plan.
func drawParts(t *rapid.T, in *subscription.Input) {
	in.SeparatePlans = rapid.IntRange(0, 2).Draw(t, "separate") == 0
	first := subscription.Part{PlanProgress: in.Resolution.PlanProgress}
	second := subscription.Part{Subscriptions: []string{"b"}, PlanProgress: subscription.PlanProgress{Plan: olmcore.RefOf(newPlan("q", ""))}}
	switch {
	case !in.SeparatePlans:
	case rapid.Bool().Draw(t, "one set"):
		first.Subscriptions = []string{"a", "b"}
		in.Resolution.Parts = []subscription.Part{first}
	default:
		first.Subscriptions = []string{"a"}
		second.PlanError = rapid.SampledFrom([]string{"", "no"}).Draw(t, "plan error")
		in.Resolution.Parts = []subscription.Part{first, second}
	}
}

// TestAnyNamespaceConverges checks that any namespace converges when the actions are run and time passes. The laws
// hold in every round.
func TestAnyNamespaceConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		quiet := 0
		for round := range 60 {
			require.NoError(t, invariant.Laws(result, in))
			checkSafety(t, in)
			out := reconcile(t, in)
			carryOut(&in, out)
			require.LessOrEqual(t, round, 50, "not at rest: %s", invariant.Describe(out.Result))
			if len(out.Actions)+len(out.Transitions) > 0 {
				quiet = 0
				continue
			}
			if quiet++; out.RequeueAfter == 0 && quiet > 1 {
				break
			}
			in.Now = in.Now.Add(out.RequeueAfter)
		}
		in.Now = in.Now.Add(1000 * time.Hour)
		out := reconcile(t, in)
		require.Empty(t, out.Actions)
		require.Empty(t, out.Transitions)
	})
}

// rounds is the maximum number of rounds until a namespace converges: one each for the status, its labels, the labels
// of the objects of the CSV, and to observe that all is done.
const rounds = 6

func TestEveryWriteMayBeLostOrRepeated(t *testing.T) {
	for name, phase := range map[string]string{"complete": "Complete", "installing": "Installing", "deleted": ""} {
		t.Run(name, func(t *testing.T) {
			w := invariant.World{
				New: func() (*fake.Cluster, error) {
					c := fake.NewCluster(epoch)
					c.AutoCreateNamespaces = true
					a, b := newSub("a"), newSub("b")
					a.Labels, b.Labels, b.Spec.Package = nil, nil, "vault"
					if phase == "" {
						follows("p", "etcd.v1")(a)
					}
					role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
						Name: "etcd", Labels: olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: ns, Name: "etcd.v1"}.Labels(),
					}}
					objects := []olmcore.Object{a, b, role, &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "group"}}}
					if phase != "" {
						p := newPlan("p", v1alpha1.InstallPlanPhase(phase), started(3))
						p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(b))
						objects = append(objects, p)
					}
					if phase == "Complete" {
						objects = append(objects, newCSV("etcd.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Labels = nil }))
					}
					return c, c.Load(objects...)
				},
				Controllers: func(*fake.Cluster) []controller.Controller { return []controller.Controller{solving()} },
				Rounds:      rounds,
			}
			require.NoError(t, invariant.Settles(w))
			require.NoError(t, invariant.Repeatable(w))
			require.NoError(t, invariant.Resumable(w))
		})
	}
}

// solving returns a controller with a solver that gives etcd.v1 and the plan p to every Subscription without a version.
func solving() controller.Controller {
	e := &embedder{forgetful: true}
	e.reset()
	c := e.controller()
	solve := c.Reconcile
	c.Reconcile = func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
		result, err := solve(ctx, r, key, now, last)
		if err != nil || e.last.Resolve == nil {
			return result, err
		}
		plan, err := olmcore.Get[*v1alpha1.InstallPlan](ctx, r, ns, "p")
		if err != nil {
			return result, err
		}
		answer := &subscription.Resolved{At: now, Resolution: olmcore.Resolution{Observed: e.last.Resolve.Subscriptions}}
		for _, f := range e.last.Resolve.Subscriptions {
			d := olmcore.SubscriptionDecision{Name: f.Name, CurrentCSV: f.CurrentCSV}
			if plan != nil && f.CurrentCSV == "" {
				d.CurrentCSV, d.Changed = "etcd.v1", true
				answer.Plan, answer.Resolution.Operators = olmcore.RefOf(plan), []olmcore.Operator{{Name: "etcd.v1"}}
			}
			answer.Resolution.Decisions = append(answer.Resolution.Decisions, d)
		}
		e.answers[key.Namespace] = answer
		return solve(ctx, r, key, now, last)
	}
	return c
}

// TestHealthOfEverySubscriptionHasPhaseAndObject checks for any namespace that each Subscription has a phase and
// the object that it is about.
func TestHealthOfEverySubscriptionHasPhaseAndObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		all, err := health.Assess(health.Input{Input: in})
		require.NoError(t, err)
		require.Len(t, all, len(in.Subscriptions.Items))
		for _, h := range all {
			require.NotEmpty(t, h.Phase)
			require.NotZero(t, h.Object)
			require.False(t, h.Since.After(in.Now.Add(time.Hour)))
		}
	})
}

// stored returns an object after it was encoded as JSON and decoded.
func stored[T any](t require.TestingT, o *T) *T {
	data, err := json.Marshal(o)
	require.NoError(t, err)
	back := new(T)
	require.NoError(t, json.Unmarshal(data, back))
	return back
}

// TestSerializedObjectsGiveTheSameResult checks that objects and histories give the same Outcome after they were
// encoded as JSON and decoded.
func TestSerializedObjectsGiveTheSameResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		again := in
		again.Subscriptions.Items, again.InstallPlans.Items, again.ClusterServiceVersions.Items = nil, nil, nil
		for _, s := range in.Subscriptions.Items {
			again.Subscriptions.Items = append(again.Subscriptions.Items, stored(t, s))
		}
		for _, p := range in.InstallPlans.Items {
			again.InstallPlans.Items = append(again.InstallPlans.Items, stored(t, p))
		}
		for _, c := range in.ClusterServiceVersions.Items {
			again.ClusterServiceVersions.Items = append(again.ClusterServiceVersions.Items, stored(t, c))
		}
		one, err := subscription.Reconcile(in)
		require.NoError(t, err)
		two, err := subscription.Reconcile(again)
		require.NoError(t, err)
		require.Equal(t, toJSON(t, one), toJSON(t, two))
		for _, h := range one.Histories {
			require.Equal(t, h, *stored(t, &h))
		}
	})
}

// toJSON returns an Outcome as JSON, with its actions as records.
func toJSON(t require.TestingT, out subscription.Outcome) string {
	var records []olmcore.Record
	for _, a := range out.Actions {
		r, err := olmcore.RecordOf(a)
		require.NoError(t, err)
		records = append(records, r)
	}
	data, err := json.Marshal([]any{records, out.Transitions, out.Diagnostics, out.RequeueAfter, out.Resolve, out.Histories})
	require.NoError(t, err)
	return string(data)
}

// TestUnrelatedSubscriptionDoesNotAffectOthers checks that another Subscription changes no report about the others,
// unless the namespace is resolved with it.
func TestUnrelatedSubscriptionDoesNotAffectOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		in.Resolution = nil
		with := in
		unrelated := vault(rapid.SampledFrom([]string{"0", "bb", "z"}).Draw(t, "name"))
		if rapid.Bool().Draw(t, "refers") {
			follows("q", "vault.v1")(unrelated)
		}
		with.Subscriptions.Items = append(slices.Clone(in.Subscriptions.Items), unrelated)
		alone, both := reconcile(t, in), reconcile(t, with)
		for _, s := range in.Subscriptions.Items {
			require.Equal(t, statusOf(t, in, alone, s.Name), statusOf(t, with, both, s.Name))
		}
	})
}
