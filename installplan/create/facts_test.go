// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/internal/bundle"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// TestPlanHasLabelsOfInvolvedPackages checks which Subscriptions give the plan the label of their package.
func TestPlanHasLabelsOfInvolvedPackages(t *testing.T) {
	for name, c := range map[string]struct {
		sub    *v1alpha1.Subscription
		change func(*olmcore.Operator)
		want   bool
	}{
		"the operator is for it":             {Subscription("b"), func(o *olmcore.Operator) { o.For = []string{"b"} }, true},
		"it follows the operator's package":  {Subscription("b"), func(o *olmcore.Operator) { o.Package = "b" }, true},
		"it has the operator's version":      {Subscription("b", Current("a.v1")), func(*olmcore.Operator) {}, true},
		"nothing relates it to the operator": {Subscription("b"), func(*olmcore.Operator) {}, false},
		"it follows no package": {
			Subscription("b", func(s *v1alpha1.Subscription) { s.Spec.Package = "" }), func(o *olmcore.Operator) { o.Package = "" }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := CreateInput([]*v1alpha1.Subscription{Subscription("a"), c.sub}, Operator("a"))
			in.Resolution.Operators[0].Package, in.Resolution.Operators[0].For = "none", nil
			c.change(&in.Resolution.Operators[0])
			_, labelled := Made(t, Planned(t, in)).Labels["operators.coreos.com/b.ops"]
			require.Equal(t, c.want, labelled)
		})
	}
}

// TestStaleResolutionCreatesNoPlan checks that no plan is created if a Subscription was changed, created or deleted
// since the resolution.
func TestStaleResolutionCreatesNoPlan(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a"), Subscription("b")}
	in := CreateInput(subs, Operator("a"))
	p := Made(t, Planned(t, in))
	in.InstallPlans = olmcore.Found(p)
	for name, change := range map[string]func([]*v1alpha1.Subscription) []*v1alpha1.Subscription{
		"another version":        func(s []*v1alpha1.Subscription) []*v1alpha1.Subscription { s[0].Status.CurrentCSV = "a.v9"; return s },
		"a new Subscription":     func(s []*v1alpha1.Subscription) []*v1alpha1.Subscription { return append(s, Subscription("c")) },
		"a deleted Subscription": func(s []*v1alpha1.Subscription) []*v1alpha1.Subscription { return s[:1] },
	} {
		next := in
		next.Subscriptions = olmcore.Found(change(Referring(subs, p))...)
		require.Equal(t, []string{create.ReasonStaleResolution}, Reasons(Planned(t, next).Result), name)
	}
}

// TestStartedPlanKeepsItsApproval checks that a plan that has started keeps its approval, and that its steps are
// written only after Subscriptions reference it by UID.
func TestStartedPlanKeepsItsApproval(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a")}
	in := CreateInput(subs, Operator("a"))
	p := Made(t, Planned(t, in))
	unnamed := Referring(subs, p)
	unnamed[0].Status.InstallPlanRef.UID = ""
	waits := in
	waits.InstallPlans, waits.Subscriptions = olmcore.Found(p), olmcore.Found(unnamed...)
	require.Equal(t, []string{create.ReasonReferencesAwaited}, Reasons(Planned(t, waits).Result))

	steps, err := bundle.Steps(Operator("a"), NS, bundle.Literal)
	require.NoError(t, err)
	running := p.DeepCopy()
	running.Status = v1alpha1.InstallPlanStatus{Phase: Installing, StartTime: Ago(time.Minute), Plan: steps, CatalogSources: []string{}}
	late := Subscription("b", Manual)
	in = CreateInput([]*v1alpha1.Subscription{subs[0], late}, Operator("a"))
	in.InstallPlans = olmcore.Found(running)
	after := Planned(t, in).Actions[0].(olmcore.Update).After.(*v1alpha1.InstallPlan)
	require.Equal(t, v1alpha1.ApprovalAutomatic, after.Spec.Approval)
	require.True(t, olmcore.OwnedBy(after, late.UID))
}

// TestNewPlanRecordsItsServiceAccount checks that a new plan records the ServiceAccount of the OperatorGroup, and that
// a plan with the same content and another ServiceAccount is another plan.
func TestNewPlanRecordsItsServiceAccount(t *testing.T) {
	sub := Subscription("a")
	make := func(groups ...*operatorsv1.OperatorGroup) *v1alpha1.InstallPlan {
		out, err := create.Plan(Completed(create.Input{
			Now: Noon, Namespace: NS, Subscriptions: olmcore.Found(sub), OperatorGroups: olmcore.Found(groups...),
			Resolution: Installs(Operator("a"))([]*v1alpha1.Subscription{sub}),
		}))
		require.NoError(t, err)
		require.Len(t, out.Actions, 1)
		return out.Actions[0].(olmcore.Create).Object.(*v1alpha1.InstallPlan)
	}
	other := Scoped("strong")
	other.Name = "other"
	unsynced := Scoped("weak")
	unsynced.Status = operatorsv1.OperatorGroupStatus{}
	free, weak := make(Group()), make(Scoped("weak"))
	require.NotContains(t, free.Annotations, accountAnnotation)
	require.Equal(t, free, make(), "nothing is recorded if the groups do not determine the account")
	require.Equal(t, free, make(Scoped("weak"), other))
	require.Equal(t, "ops/weak", weak.Annotations[accountAnnotation])
	require.Equal(t, weak, make(unsynced), "the spec is used while the status is empty")
	require.Equal(t, weak, make(Scoped("weak"), func() *operatorsv1.OperatorGroup {
		g := Scoped("strong")
		g.Name, g.Status.Namespaces = "other", nil
		return g
	}()), "a group that manages nothing does not count")
	require.NotEqual(t, free.Name, weak.Name)
	require.NotEqual(t, weak.Name, make(Scoped("strong")).Name)
}

// TestInvalidPackageLabelIsReported checks that a Subscription whose package cannot be a label owns the plan, and that
// the missing label is reported.
func TestInvalidPackageLabelIsReported(t *testing.T) {
	subs := []*v1alpha1.Subscription{Subscription("a", func(s *v1alpha1.Subscription) { s.Spec.Package = strings.Repeat("-", 70) })}
	o := Operator("a")
	o.Package = subs[0].Spec.Package
	out := Planned(t, CreateInput(subs, o))
	p := Made(t, out)
	require.Equal(t, map[string]string{"olm.managed": "true"}, p.Labels)
	require.True(t, olmcore.OwnedBy(p, subs[0].UID))
	require.Equal(t, []string{create.ReasonLabelImpossible}, Reasons(out.Result))
}

func TestGatherReadsTheNamespace(t *testing.T) {
	sub, p, version := Subscription("a"), Plan(Complete, nil), CSV("a.v1")
	g := Group()
	r := Reader(t, sub, p, version, g, CSV("other.v1"), Subscription("b", func(s *v1alpha1.Subscription) { s.Namespace = "there" }))
	resolution := Installs(Operator("a"), Operator("b"))([]*v1alpha1.Subscription{sub})
	got, err := create.Gather(t.Context(), r, NS, resolution, installplan.Config{})
	require.NoError(t, err)
	Same(t, create.Input{
		Namespace: NS, Resolution: resolution, Subscriptions: olmcore.Found(sub), InstallPlans: olmcore.Found(p),
		OperatorGroups: olmcore.Found(g), ClusterServiceVersions: olmcore.Found(version), ConfigMaps: olmcore.Found[*corev1.ConfigMap](),
	}, got)
	for kind := range r.Kinds {
		broken := r
		broken.Fail = kind
		_, err := create.Gather(t.Context(), broken, NS, resolution, installplan.Config{})
		require.ErrorContains(t, err, "no answer")
	}
}
