// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

const notCreated = v1alpha1.StepStatusNotCreated

type planChange = func(*v1alpha1.InstallPlan)

// planOfPackages returns a plan with a generation that contains packages, as package create writes it.
func planOfPackages(
	name string, generation int, packages string, phase v1alpha1.InstallPlanPhase, changes ...planChange,
) *v1alpha1.InstallPlan {
	p := Plan(phase, []*v1alpha1.Step{versionOfPackage("a.v"+string(rune('0'+generation)), "a")})
	p.ObjectMeta, p.Spec.Generation = Meta(name), generation
	p.Annotations = map[string]string{olmcore.KeyPrefix + "packages": packages}
	p.Labels = map[string]string{}
	for _, pkg := range []string{"a", "b"} {
		p.Labels[olmcore.ComponentLabelPrefix+pkg+"."+NS] = ""
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func startedAgo(d time.Duration) planChange {
	return func(p *v1alpha1.InstallPlan) { p.Status.StartTime = Ago(d) }
}

func withoutSteps(p *v1alpha1.InstallPlan) {
	p.Status.Plan, p.Status.Phase = nil, v1alpha1.InstallPlanPhaseNone
}

// TestPlanStartsAfterEarlierPlans checks that an approved plan waits for earlier plans of the same package. A stale
// cache may have hidden them when the steps were written.
func TestPlanStartsAfterEarlierPlans(t *testing.T) {
	const waits = "InstallPlan install-w is not finished"
	for name, c := range map[string]struct {
		other   *v1alpha1.InstallPlan
		state   installplan.State
		message string
	}{
		"the earlier plan runs": {
			planOfPackages("install-w", 1, "a", Installing, startedAgo(time.Minute)), installplan.StateWaiting, waits,
		},
		"the earlier plan waits for approval": {planOfPackages("install-w", 1, "a", RequiresApproval), installplan.StateWaiting, waits},
		"the earlier plan is complete": {
			planOfPackages("install-w", 1, "a", Complete, startedAgo(time.Minute)), installplan.StateStarting, "",
		},
		"the earlier plan has failed": {
			planOfPackages("install-w", 1, "a", Failed, startedAgo(time.Minute)), installplan.StateStarting, "",
		},
		"the earlier plan has no steps": {planOfPackages("install-w", 1, "a", None, withoutSteps), installplan.StateStarting, ""},
		"the earlier plan has other packages": {planOfPackages("install-w", 1, "b", Installing, func(p *v1alpha1.InstallPlan) {
			startedAgo(time.Minute)(p)
			p.Status.Plan = []*v1alpha1.Step{versionOfPackage("b.v1", "b")}
		}), installplan.StateStarting, ""},
		"the earlier plan is of the same generation": {
			planOfPackages("install-w", 2, "a", Installing, startedAgo(time.Minute)), installplan.StateWaiting, waits,
		},
		"the other plan is later": {planOfPackages("install-y", 3, "a", None, withoutSteps), installplan.StateStarting, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(planOfPackages("install-x", 2, "a", Installing), func(in *installplan.Input) { in.RelatedPlans = olmcore.Found(c.other) })
			require.NoError(t, invariant.Laws(reconcileResult, in))
			a := assess(t, in)
			require.Equal(t, c.state, a.State)
			require.Equal(t, c.message, a.Message)
			if c.state == installplan.StateWaiting {
				require.Contains(t, Reasons(reconcile(t, in)), installplan.ReasonEarlierPlanUnfinished)
			}
		})
	}
}

// TestPlanLeavesStepsToLaterPlans checks that a plan applies no more steps for the packages of a later plan that has
// started. Two started plans exist if OLM left them or a user forced them.
func TestPlanLeavesStepsToLaterPlans(t *testing.T) {
	earlier := func(statuses ...v1alpha1.StepStatus) *v1alpha1.InstallPlan {
		return planOfPackages("install-x", 1, "a,b", Installing, startedAgo(time.Minute), func(p *v1alpha1.InstallPlan) {
			p.Status.Plan = []*v1alpha1.Step{
				WithStatus(statuses[0], versionOfPackage("a.v1", "a")), WithStatus(statuses[1], RoleStep("a.v1", "role")),
				WithStatus(statuses[2], versionOfPackage("b.v1", "b")),
			}
			p.Spec.ClusterServiceVersionNames = []string{"a.v1", "b.v1"}
		})
	}
	later := planOfPackages("install-y", 2, "a", Installing, startedAgo(time.Second))
	for name, c := range map[string]struct {
		in      *v1alpha1.InstallPlan
		later   *v1alpha1.InstallPlan
		want    []v1alpha1.StepStatus
		actions []string
	}{
		"nothing is applied": {
			earlier(Unknown, Unknown, Unknown), later, []v1alpha1.StepStatus{notCreated, notCreated, NotPresent},
			[]string{"updateStatus InstallPlan ops/install-x (PlanProgressed)", "create ClusterServiceVersion ops/b.v1 (StepAbsent)"},
		},
		"the version is created": {
			earlier(Created, Unknown, NotPresent), later, []v1alpha1.StepStatus{Created, notCreated, NotPresent},
			[]string{"updateStatus InstallPlan ops/install-x (PlanProgressed)", "create ClusterServiceVersion ops/b.v1 (StepAbsent)"},
		},
		"the later plan has not started": {
			earlier(NotPresent, Unknown, NotPresent), planOfPackages("install-y", 2, "a", RequiresApproval),
			[]v1alpha1.StepStatus{NotPresent, Unknown, NotPresent},
			[]string{"create ClusterServiceVersion ops/a.v1 (StepAbsent)", "create ClusterServiceVersion ops/b.v1 (StepAbsent)"},
		},
		"the later plan was deleted after it took over": {
			earlier(notCreated, notCreated, NotPresent), nil, []v1alpha1.StepStatus{notCreated, notCreated, NotPresent},
			[]string{"create ClusterServiceVersion ops/b.v1 (StepAbsent)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.in, func(in *installplan.Input) {
				if c.later != nil {
					in.RelatedPlans = olmcore.Found(c.later)
				}
			})
			require.NoError(t, invariant.Laws(reconcileResult, in))
			r := reconcile(t, in)
			require.Equal(t, c.want, Statuses(statusOf(in, r)))
			require.Equal(t, c.actions, Describe(r))
		})
	}
}

// TestFailedPlanSkipsVersionsThatItsSubscriptionsLeft checks that a failed plan which is restarted does not install the version
// of a Subscription that follows a later plan, even if that plan was deleted.
func TestFailedPlanSkipsVersionsThatItsSubscriptionsLeft(t *testing.T) {
	failed := planOfPackages("install-x", 1, "a,b", Failed, startedAgo(time.Hour), func(p *v1alpha1.InstallPlan) {
		p.Status.Plan = []*v1alpha1.Step{
			WithStatus(Unknown, versionOfPackage("a.v1", "a")), WithStatus(Created, versionOfPackage("b.v1", "b")),
			WithStatus(Unknown, RoleStep("b.v1", "role")),
		}
		p.Spec.ClusterServiceVersionNames = []string{"a.v1", "b.v1"}
		p.Status.AttenuatedServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: NS, Name: "account"}
	})
	follows := func(pkg, plan string, uid types.UID, generation int) *v1alpha1.Subscription {
		return &v1alpha1.Subscription{
			ObjectMeta: Meta(pkg), Spec: &v1alpha1.SubscriptionSpec{Package: pkg},
			Status: v1alpha1.SubscriptionStatus{
				InstallPlanRef:        &corev1.ObjectReference{Kind: v1alpha1.InstallPlanKind, Namespace: NS, Name: plan, UID: uid},
				InstallPlanGeneration: generation,
			},
		}
	}
	replacing := func(name, old string) *v1alpha1.ClusterServiceVersion {
		c := &v1alpha1.ClusterServiceVersion{ObjectMeta: Meta(name)}
		c.Spec.Replaces = old
		return c
	}
	version := replacing("b.v1", "")
	for name, c := range map[string]struct {
		other    *v1alpha1.Subscription
		versions []*v1alpha1.ClusterServiceVersion
		want     []v1alpha1.StepStatus
	}{
		"it follows a later plan, and its version was deleted": {
			follows("b", "install-gone", "gone", 2), nil, []v1alpha1.StepStatus{Unknown, notCreated, notCreated},
		},
		"it follows a later plan, and its version exists": {
			follows("b", "install-gone", "gone", 2), []*v1alpha1.ClusterServiceVersion{version}, []v1alpha1.StepStatus{Unknown, Created, notCreated},
		},
		"it follows the plan": {
			follows("b", failed.Name, failed.UID, 2), nil, []v1alpha1.StepStatus{Unknown, Created, Unknown},
		},
		"another version replaces its version": {
			follows("b", failed.Name, failed.UID, 1), []*v1alpha1.ClusterServiceVersion{version, replacing("b.v2", "b.v1")},
			[]v1alpha1.StepStatus{Unknown, Created, notCreated},
		},
		"another version replaces its version through a third one": {
			follows("b", failed.Name, failed.UID, 1),
			[]*v1alpha1.ClusterServiceVersion{version, replacing("b.v3", "b.v2"), replacing("b.v2", "b.v1")},
			[]v1alpha1.StepStatus{Unknown, Created, notCreated},
		},
		"another version replaces its version, which was deleted": {
			follows("b", failed.Name, failed.UID, 1), []*v1alpha1.ClusterServiceVersion{replacing("b.v2", "b.v1")},
			[]v1alpha1.StepStatus{Unknown, notCreated, notCreated},
		},
		"its version replaces another one": {
			follows("b", failed.Name, failed.UID, 1), []*v1alpha1.ClusterServiceVersion{replacing("b.v1", "b.v0"), replacing("b.v0", "")},
			[]v1alpha1.StepStatus{Unknown, Created, Unknown},
		},
		"the other plan is not later": {
			follows("b", "install-gone", "gone", 1), nil, []v1alpha1.StepStatus{Unknown, Created, Unknown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(failed, func(in *installplan.Input) {
				in.Subscriptions = olmcore.Found(follows("a", failed.Name, failed.UID, 1), c.other)
				in.ClusterServiceVersions, in.RBACChanged = olmcore.Found(c.versions...), true
			})
			repaired, isUpdate := reconcile(t, in).Actions[0].(olmcore.Update)
			require.True(t, isUpdate, "the plan gets its owners first")
			in.InstallPlan = repaired.After.(*v1alpha1.InstallPlan)
			r := reconcile(t, in)
			require.Equal(t, Installing, statusOf(in, r).Phase, Describe(r))
			require.Equal(t, c.want, Statuses(statusOf(in, r)))
		})
	}
}

// TestEndlessWaitFailsWhileALaterPlanWaits checks that a plan that would wait without end fails after ten minutes if a
// later plan of the same package waits for it, and only then.
func TestEndlessWaitFailsWhileALaterPlanWaits(t *testing.T) {
	const grace = 10 * time.Minute
	forbidden := func(in *installplan.Input) {
		since := Noon.Add(-time.Hour)
		in.LastRun = olmcore.LastResults{{Group: "operators.coreos.com", Kind: "ClusterServiceVersion", Namespace: NS, Name: "a.v1"}: {
			Class: olmcore.Forbidden, Message: "no", Count: 9, Tries: 9, First: since, Since: since, Last: Noon.Add(-time.Minute),
		}}
	}
	noGroup := func(in *installplan.Input) { in.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]() }
	leaving := func(in *installplan.Input) {
		c := CSV("a.v1")
		c.DeletionTimestamp, c.Finalizers = Ago(time.Hour), []string{"x"}
		in.ClusterServiceVersions = olmcore.Found(c)
	}
	checkFailed := func(since time.Duration) planChange {
		return func(p *v1alpha1.InstallPlan) {
			c := Condition(corev1.ConditionFalse, "InstallCheckFailed", "no operator group found that is managing this namespace")
			c.LastTransitionTime, c.LastUpdateTime = Ago(since), Ago(since)
			p.Status.Conditions = []v1alpha1.InstallPlanCondition{c}
		}
	}
	for name, c := range map[string]struct {
		world   func(*installplan.Input)
		changes []planChange
		fails   bool
	}{
		"a write is forbidden":                    {forbidden, []planChange{startedAgo(time.Hour)}, true},
		"a write has just been forbidden":         {forbidden, []planChange{startedAgo(grace - time.Second)}, false},
		"a step waits":                            {leaving, []planChange{startedAgo(grace)}, true},
		"a step has waited for a moment":          {leaving, []planChange{startedAgo(grace - time.Second)}, false},
		"the OperatorGroup was deleted":           {noGroup, []planChange{startedAgo(time.Hour), checkFailed(grace)}, true},
		"the OperatorGroup has just been deleted": {noGroup, []planChange{startedAgo(time.Hour), checkFailed(grace - time.Second)}, false},
		"a plan that has not started":             {noGroup, []planChange{checkFailed(time.Hour)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOfPackages("install-x", 1, "a", Installing, c.changes...)
			later := planOfPackages("install-y", 2, "a", None, withoutSteps)
			in := input(plan, c.world)
			require.NotEqual(t, Failed, assess(t, in).Phase, "without a later plan")
			in.RelatedPlans = olmcore.Found(later)
			require.NoError(t, invariant.Laws(reconcileResult, in))
			require.Equal(t, c.fails, assess(t, in).Phase == Failed)
		})
	}
}

// TestGeneratedSubscriptionIsCreatedOnce checks that a plan creates no second Subscription to a package. The version of
// the plan is installed for the other Subscription, unless that one has another version.
func TestGeneratedSubscriptionIsCreatedOnce(t *testing.T) {
	const manifest = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","metadata":{"name":"a-stable-cool"},` +
		`"spec":{"name":"a","source":"cool","sourceNamespace":"olm","channel":"stable"}}`
	plan := func() *v1alpha1.InstallPlan {
		return planOfPackages("install-x", 1, "a", Installing, startedAgo(time.Second), func(p *v1alpha1.InstallPlan) {
			p.Status.Plan = append(p.Status.Plan, Step("a.v1", "operators.coreos.com", "v1alpha1", "Subscription", "a-stable-cool", manifest))
		})
	}
	named := func(name, pkg string, changes ...func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
		s := Subscription(pkg, changes...)
		s.Name, s.UID = name, types.UID("uid-"+name)
		return s
	}
	deleted := func(s *v1alpha1.Subscription) {
		s.DeletionTimestamp, s.Finalizers = Ago(time.Second), []string{"x"}
	}
	const createVersion, createSubscription = "create ClusterServiceVersion ops/a.v1 (StepAbsent)", "create Subscription ops/a-stable-cool (StepAbsent)"
	for name, c := range map[string]struct {
		subs    []*v1alpha1.Subscription
		want    []v1alpha1.StepStatus
		actions []string
	}{
		"no other Subscription": {
			nil, []v1alpha1.StepStatus{NotPresent, NotPresent}, []string{createVersion, createSubscription},
		},
		"a Subscription to another package": {
			[]*v1alpha1.Subscription{named("b", "b")}, []v1alpha1.StepStatus{NotPresent, NotPresent},
			[]string{createVersion, createSubscription},
		},
		"a Subscription that is being deleted": {
			[]*v1alpha1.Subscription{named("mine", "a", deleted)}, []v1alpha1.StepStatus{NotPresent, NotPresent},
			[]string{createVersion, createSubscription},
		},
		"a Subscription without a version": {
			[]*v1alpha1.Subscription{named("mine", "a")}, []v1alpha1.StepStatus{NotPresent, notCreated}, []string{createVersion},
		},
		"a Subscription with the same version": {
			[]*v1alpha1.Subscription{named("mine", "a", Current("a.v1"))}, []v1alpha1.StepStatus{NotPresent, notCreated},
			[]string{createVersion},
		},
		"a Subscription with another version": {
			[]*v1alpha1.Subscription{named("mine", "a", Current("a.v9"))}, []v1alpha1.StepStatus{notCreated, notCreated}, nil,
		},
		"the plan's own Subscription exists already": {
			[]*v1alpha1.Subscription{named("mine", "a"), named("a-stable-cool", "a")}, []v1alpha1.StepStatus{NotPresent, Present},
			[]string{createVersion},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan()
			OwnedBy(c.subs...)(p)
			in := input(p, func(in *installplan.Input) { in.Subscriptions = olmcore.Found(c.subs...) })
			require.NoError(t, invariant.Laws(reconcileResult, in))
			r := reconcile(t, in)
			require.Equal(t, c.want, Statuses(statusOf(in, r)))
			var created []string
			for _, line := range Describe(r) {
				if line != "updateStatus InstallPlan ops/install-x (PlanProgressed)" {
					created = append(created, line)
				}
			}
			require.Equal(t, c.actions, created)
		})
	}
}

// TestObjectsFollowARecreatedVersion checks that the objects of applied steps get the owner of a version that was
// deleted and created again while the plan was running.
func TestObjectsFollowARecreatedVersion(t *testing.T) {
	owned := func(uid types.UID) func(*rbacv1.Role) {
		return func(r *rbacv1.Role) {
			r.Labels = map[string]string{"olm.managed": "true"}
			r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "a.v1", UID: uid}}
		}
	}
	for name, c := range map[string]struct {
		change  func(*rbacv1.Role)
		actions []string
	}{
		"the owner is the version":        {owned("uid-a.v1"), nil},
		"the owner is the version before": {owned("uid-before"), []string{"update Role ops/role (StepDiffers)"}},
		"garbage collection removed the owner": {
			func(r *rbacv1.Role) { owned("")(r); r.OwnerReferences = nil }, []string{"update Role ops/role (StepDiffers)"},
		},
		"the object is unmanaged": {func(*rbacv1.Role) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOfPackages("install-x", 1, "a", Installing, startedAgo(time.Minute), func(p *v1alpha1.InstallPlan) {
				p.Status.Plan = []*v1alpha1.Step{
					WithStatus(Created, versionOfPackage("a.v1", "a")), WithStatus(Created, RoleStep("a.v1", "role")), RoleStep("a.v1", "open"),
				}
			})
			role := &rbacv1.Role{ObjectMeta: Meta("role"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
			c.change(role)
			in := input(plan, with(CSV("a.v1"), role))
			require.NoError(t, invariant.Laws(reconcileResult, in))
			require.Equal(t, append(c.actions, "create Role ops/open (StepAbsent)"), Describe(reconcile(t, in))[1:])
		})
	}
}
