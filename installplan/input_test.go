// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// TestInputErrors checks that errors name the field. It includes OLM's cases.
func TestInputErrors(t *testing.T) {
	change := func(f func(*installplan.Input)) installplan.Input {
		return input(Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, Started(time.Second)), f)
	}
	for field, in := range map[string]installplan.Input{
		"Now":                            change(func(in *installplan.Input) { in.Now = time.Time{} }),
		"InstallPlan":                    change(func(in *installplan.Input) { in.InstallPlan = nil }),
		"InstallPlan.metadata.name":      change(func(in *installplan.Input) { in.InstallPlan.Name = "" }),
		"InstallPlan.metadata.namespace": change(func(in *installplan.Input) { in.InstallPlan.Namespace = "" }),
		"Subscriptions[0].metadata.namespace": change(func(in *installplan.Input) {
			in.Subscriptions = olmcore.Found[*v1alpha1.Subscription](Subscription("a", func(s *v1alpha1.Subscription) { s.Namespace = "there" }))
		}),
		"Namespace[0].metadata.name": change(func(in *installplan.Input) {
			in.Namespace = olmcore.Found(&corev1.Namespace{ObjectMeta: ClusterMeta("there")})
		}),
		"OperatorGroups[0].metadata.namespace": change(func(in *installplan.Input) { in.OperatorGroups.Items[0].Namespace = "there" }),
		"ClusterServiceVersions[0].metadata.namespace": change(func(in *installplan.Input) {
			in.ClusterServiceVersions = olmcore.Found[*v1alpha1.ClusterServiceVersion](CSV("a", func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = "there" }))
		}),
		"ClusterServiceVersions[1]":    change(with(CSV("a.v1"), CSV("a.v1"))),
		"CustomResourceDefinitions[1]": change(with(CRDObject("v1"), CRDObject("v1"))),
		"Objects[1]":                   change(with(&rbacv1.Role{ObjectMeta: Meta("r")}, &rbacv1.Role{ObjectMeta: Meta("r")})),
		"Subscriptions[1]":             change(with(Subscription("a"), Subscription("a", func(s *v1alpha1.Subscription) { s.UID = "other" }))),
		"Config.InstallTimeout":        change(func(in *installplan.Input) { in.Config.InstallTimeout = -1 }),
		"Subscriptions[0]":             change(func(in *installplan.Input) { in.Subscriptions = olmcore.Found[*v1alpha1.Subscription](nil) }),
		"Objects[0]":                   change(func(in *installplan.Input) { in.Objects = olmcore.Found[olmcore.Object]((*rbacv1.Role)(nil)) }),
		"Subscriptions":                change(func(in *installplan.Input) { in.Subscriptions.Complete = false }),
		"OperatorGroups":               change(func(in *installplan.Input) { in.OperatorGroups = olmcore.Observed[*operatorsv1.OperatorGroup]{} }),
		"Objects":                      change(func(in *installplan.Input) { in.Objects.Complete = false }),
		"CatalogSources": change(func(in *installplan.Input) {
			in.PullSecrets, in.CatalogSources.Complete = olmcore.Found(&corev1.Secret{ObjectMeta: InOLM("pull")}), false
		}),
	} {
		t.Run(field, func(t *testing.T) {
			_, err := reconcileResult(in)
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
			var breach *olmcore.InputError
			require.ErrorAs(t, err, &breach)
			require.Equal(t, field, breach.Field)
			assessment, assessErr := installplan.Assess(in)
			require.Equal(t, err, assessErr)
			require.Zero(t, assessment)
		})
	}
	good := CreateInput([]*v1alpha1.Subscription{Subscription("a")}, Operator("a"))
	for field, f := range map[string]func(*create.Input){
		"Now":                                 func(in *create.Input) { in.Now = time.Time{} },
		"Namespace":                           func(in *create.Input) { in.Namespace = "" },
		"Subscriptions[0].metadata.namespace": func(in *create.Input) { in.Namespace = "there" },
		"InstallPlans[0].metadata.namespace": func(in *create.Input) {
			in.InstallPlans = olmcore.Found(Plan(None, nil, func(p *v1alpha1.InstallPlan) { p.Namespace = "there" }))
		},
		"Resolution.Operators[0].Name": func(in *create.Input) { in.Resolution.Operators = []olmcore.Operator{{}} },
		"Resolution.Generated[0]":      func(in *create.Input) { in.Resolution.Generated = []*v1alpha1.Subscription{nil} },
		"Config.MaxStatusBytes":        func(in *create.Input) { in.Config.MaxStatusBytes = -1 },
	} {
		in := good
		f(&in)
		_, err := create.Plan(Completed(in))
		var breach *olmcore.InputError
		require.ErrorAs(t, err, &breach)
		require.Equal(t, field, breach.Field)
	}
}

// TestIncompleteObjectsAreTolerated checks that objects that a cluster may contain are no error.
func TestIncompleteObjectsAreTolerated(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, in := range map[string]installplan.Input{
		"a Subscription without spec": input(Plan(Installing, nil), with(Subscription("a", RefersTo("install-x"), func(s *v1alpha1.Subscription) { s.Spec = nil }))),
		"a huge manifest":             input(Plan(Installing, []*v1alpha1.Step{Step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"x"},"data":{"a":"`+long+`"}}`)}, Started(time.Second))),
		"a huge name":                 input(Plan(Installing, []*v1alpha1.Step{Step(long, "", "v1", "ConfigMap", long, `{"metadata":{"name":"`+long+`"}}`)}, Started(time.Second))),
		"invalid UTF-8":               input(Plan(Installing, []*v1alpha1.Step{Step("\xff", "", "v1", "ConfigMap", "\xff", "{\"metadata\":{\"name\":\"\xff\"}}")}, Started(time.Second))),
		"a start in the future":       input(Plan(Installing, []*v1alpha1.Step{RoleStep("gone.v1", "r")}, Started(-time.Hour))),
		"a start long ago":            input(Plan(Installing, []*v1alpha1.Step{RoleStep("gone.v1", "r")}, Started(1e6*time.Hour))),
		"an empty definition":         input(Plan(Installing, []*v1alpha1.Step{CRDStep("", "v1")}, Started(time.Second)), with(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: ClusterMeta("things.example.com")})),
		"a pull Secret and one of the bundle of one name": input(Plan(Installing, []*v1alpha1.Step{
			Step("", "", "v1", "BundleSecret", "x", `{"metadata":{"name":"x"}}`), Step("", "", "v1", "Secret", "x", ""),
			Step("", "", "v1", "Secret", "y", ""), Step("", "", "v1", "BundleSecret", "y", `{"metadata":{"name":"y"}}`)}, Started(time.Second))),
		"a plan with nil steps only": input(Plan(Installing, []*v1alpha1.Step{nil, nil}, Started(time.Second))),
		"a group without status": input(Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}), func(in *installplan.Input) {
			in.OperatorGroups = olmcore.Found(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Name: "group"}})
			in.OperatorGroups.Items[0].Namespace = NS
		}),
	} {
		t.Run(name, func(t *testing.T) {
			r := reconcile(t, in)
			for _, a := range r.Actions {
				_, err := olmcore.RecordOf(a)
				require.NoError(t, err)
			}
			_, _ = installplan.Assess(in)
		})
	}
}

// TestTooManyStepsAreRefused checks that a plan with too many steps is refused before any step is read.
func TestTooManyStepsAreRefused(t *testing.T) {
	for steps, phase := range map[int]v1alpha1.InstallPlanPhase{2000: Installing, 2001: Failed} {
		in := input(Plan(Installing, slices.Repeat([]*v1alpha1.Step{RoleStep("", "r")}, steps), Started(time.Second)))
		require.Equal(t, phase, statusOf(in, reconcile(t, in)).Phase)
	}
}

// TestUnreadKindsAreNamed checks which lists Reconcile needs. A plan that waits or is done needs only its
// Subscriptions. For a plan that is executed or retried, the error names the kind that was not read.
func TestUnreadKindsAreNamed(t *testing.T) {
	sub := Subscription("a", RefersTo("install-x"))
	for name, c := range map[string]struct {
		plan    *v1alpha1.InstallPlan
		want    installplan.State
		missing string
	}{
		"complete": {plan: Plan(Complete, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(sub)), want: installplan.StateComplete},
		"failed":   {plan: Plan(Failed, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(sub)), missing: "OperatorGroup"},
		"superseded": {plan: Plan(Failed, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(sub), func(p *v1alpha1.InstallPlan) {
			p.Status.Conditions = []v1alpha1.InstallPlanCondition{Condition(corev1.ConditionFalse, installplan.ReasonSuperseded, "x")}
		}), want: installplan.StateFailed},
		"without any": {plan: Plan(None, nil, OwnedBy(sub)), want: installplan.StateWithoutStatus},
		"installing":  {plan: Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(sub), Started(time.Second)), missing: "OperatorGroup"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := olmcore.NewSnapshot([]olmcore.Object{c.plan, sub})
			require.NoError(t, err)
			in, err := installplan.Gather(t.Context(), snapshot, types.NamespacedName{Namespace: NS, Name: "install-x"}, installplan.Config{})
			if c.missing != "" {
				var notRead *olmcore.NotReadError
				require.ErrorAs(t, err, &notRead)
				require.Equal(t, c.missing, notRead.Kind.Kind)
				require.Equal(t, "what an InstallPlan has still to do", notRead.Unknown)
				return
			}
			require.NoError(t, err)
			in.Now = Noon
			require.Equal(t, c.want, assess(t, in).State)
		})
	}
}

func TestUnreadPlansKeepTheBundle(t *testing.T) {
	s := CSVStep("etcd.v1")
	s.Resource.Manifest = Reference()
	going := Plan(Installing, []*v1alpha1.Step{s}, func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = Ago(0) })
	old := UnpackedBundle(25 * time.Hour)
	in := input(going, func(in *installplan.Input) { in.ConfigMaps = olmcore.Found[*corev1.ConfigMap](old) })
	Same(t, []string{"update InstallPlan ops/install-x (PlanDeleted)"}, Describe(reconcile(t, in)))
	in.OtherPlans = olmcore.Found[*v1alpha1.InstallPlan]()
	Same(t, []string{"delete ConfigMap ops/" + BundleName + " (PlanDeleted)"}, Describe(reconcile(t, in)))

	all := SweepInput(old)
	require.Len(t, Swept(t, all).Actions, 1)
	all.OtherPlans = olmcore.Observed[*v1alpha1.InstallPlan]{}
	require.Empty(t, Swept(t, all).Actions)
}

func TestUnreadNamespaceBlocksGatherAndSweep(t *testing.T) {
	sub := Subscription("a", RefersTo("install-x"))
	p := Plan(Installing, []*v1alpha1.Step{CSVStep("a.v1")}, OwnedBy(sub), Started(time.Second))
	kinds := []olmcore.Scope{}
	for _, k := range olmcore.Kinds() {
		if k.GroupVersionKind.Kind != "Namespace" {
			kinds = append(kinds, olmcore.Scope{Kind: k.GroupKind()})
		}
	}
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{p, sub}, kinds...)
	require.NoError(t, err)
	_, err = installplan.Gather(t.Context(), snapshot, types.NamespacedName{Namespace: NS, Name: "install-x"}, installplan.Config{})
	require.EqualError(t, err, "Namespace objects were not read, so whether the namespace of an InstallPlan is being deleted is unknown")

	in := SweepInput(UnpackedBundle(25 * time.Hour))
	require.NotEmpty(t, Swept(t, in).Actions)
	in.Namespaces = olmcore.Observed[*corev1.Namespace]{}
	require.Empty(t, Swept(t, in).Actions)
}
