// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

const accountAnnotation = "olmcore/service-account"

// TestAPlanKeepsTheAccountThatItWasMadeUnder: no later group, and nothing that is
// written into the plan, gives it more rights than that account has.
func TestAPlanKeepsTheAccountThatItWasMadeUnder(t *testing.T) {
	annotated := func(value string) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Annotations = map[string]string{accountAnnotation: value} }
	}
	recorded := func(ref *corev1.ObjectReference) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Status.AttenuatedServiceAccountRef = ref }
	}
	again := olmReference("weak")
	again.UID = "made again"
	renewed := scoped("weak")
	renewed.Status.ServiceAccountRef = again
	stolen := scoped("weak")
	stolen.Status.ServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "kube-system", Name: "weak"}
	otherName := scoped("weak")
	otherName.Status.ServiceAccountRef = olmReference("strong")
	const (
		anew        = "; delete the plan to have it made anew"
		gone        = "made under service account ops/weak, and the operator group of the namespace names none now" + anew
		replaced    = "made under service account ops/weak, and the operator group of the namespace names ops/strong now" + anew
		unconfirmed = "please make sure the service account exists. sa=weak operatorgroup=ops/group"
	)
	type groups = []*operatorsv1.OperatorGroup
	for name, c := range map[string]struct {
		plan    []func(*v1alpha1.InstallPlan)
		groups  groups
		runsAs  string // "" when it is stopped
		problem string
	}{
		"the group is gone": {plan: []func(*v1alpha1.InstallPlan){recorded(olmReference("weak"))},
			problem: "no operator group found that is managing this namespace"},
		"another group without an account":                      {plan: []func(*v1alpha1.InstallPlan){recorded(olmReference("weak"))}, groups: groups{group()}, problem: gone},
		"another group without an account, before it started":   {plan: []func(*v1alpha1.InstallPlan){annotated("ops/weak")}, groups: groups{group()}, problem: gone},
		"another account":                                       {plan: []func(*v1alpha1.InstallPlan){recorded(olmReference("weak"))}, groups: groups{scoped("strong")}, problem: replaced},
		"another account, before it started":                    {plan: []func(*v1alpha1.InstallPlan){annotated("ops/weak")}, groups: groups{scoped("strong")}, problem: replaced},
		"the annotation was changed to the present account":     {plan: []func(*v1alpha1.InstallPlan){annotated("ops/strong"), recorded(olmReference("weak"))}, groups: groups{scoped("strong")}, problem: replaced},
		"the annotation was removed":                            {plan: []func(*v1alpha1.InstallPlan){recorded(olmReference("weak"))}, groups: groups{group()}, problem: gone},
		"the same account":                                      {plan: []func(*v1alpha1.InstallPlan){annotated("ops/weak"), recorded(olmReference("weak"))}, groups: groups{scoped("weak")}, runsAs: "weak"},
		"the account was deleted and made again":                {plan: []func(*v1alpha1.InstallPlan){annotated("ops/weak"), recorded(olmReference("weak"))}, groups: groups{renewed}, runsAs: "weak"},
		"a plan of the controller gets an account":              {groups: groups{scoped("weak")}, runsAs: "weak"},
		"a tenant's plan that names an account he likes":        {plan: []func(*v1alpha1.InstallPlan){annotated("kube-system/admin")}, groups: groups{scoped("weak")}, problem: "made under service account kube-system/admin, and the operator group of the namespace names ops/weak now" + anew},
		"a tenant's plan whose status names an account":         {plan: []func(*v1alpha1.InstallPlan){recorded(&corev1.ObjectReference{Namespace: "kube-system", Name: "admin"})}, groups: groups{scoped("weak")}, problem: "made under service account kube-system/admin, and the operator group of the namespace names ops/weak now" + anew},
		"a group whose status names an account elsewhere":       {groups: groups{stolen}, problem: unconfirmed},
		"a group whose status names another account than asked": {groups: groups{otherName}, problem: unconfirmed},
	} {
		for phase, approved := range map[v1alpha1.InstallPlanPhase]bool{installing: true, requiresApproval: true} {
			t.Run(name+", "+string(phase), func(t *testing.T) {
				p := plan(phase, []*v1alpha1.Step{roleStep("", "r")}, c.plan...)
				p.Spec.Approved = approved
				if phase == installing {
					p.Status.StartTime = ago(time.Second)
				}
				in := input(p, func(in *installplan.Input) {
					in.OperatorGroups, in.ServiceAccount = olmcore.Found(c.groups...), &corev1.ServiceAccount{ObjectMeta: meta("weak")}
				})
				for range 3 {
					r := reconcile(t, in)
					next := p.DeepCopy()
					next.Status = statusOf(in, r)
					in.InstallPlan = next
					for _, a := range r.Actions {
						if _, step := a.(olmcore.Create); step {
							require.NotEmpty(t, c.runsAs, "%v", describe(r))
							require.Equal(t, c.runsAs, a.Identity().Name)
							require.Equal(t, ns, a.Identity().Namespace)
						}
					}
				}
				if c.runsAs == "" {
					require.Equal(t, c.problem, in.InstallPlan.Status.GetCondition(v1alpha1.InstallPlanInstalled).Message)
					require.Equal(t, phase, in.InstallPlan.Status.Phase, "it goes on when the group is as it was")
					return
				}
				require.Equal(t, c.groups[0].Status.ServiceAccountRef, in.InstallPlan.Status.AttenuatedServiceAccountRef)
				require.Empty(t, in.InstallPlan.Status.Conditions)
			})
		}
	}
}
