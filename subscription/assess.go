// SPDX-License-Identifier: Apache-2.0

package subscription

import "github.com/operator-framework/api/pkg/operators/v1alpha1"

// Assessment is what Reconcile would decide, without the objects: for command
// lines, metrics and tests.
type Assessment struct {
	// Subscriptions has one entry for each, sorted by name.
	Subscriptions []SubscriptionAssessment
	Gate          Gate
}

// SubscriptionAssessment is the decision for one Subscription. The fields named
// as in the API hold what status should say.
type SubscriptionAssessment struct {
	Name string
	// Whole is the one answer to "is it installed yet?".
	Whole Whole
	// Stage is the observed stage of the plan that InstallPlan names.
	Stage                    Stage
	InstallPlan              string
	State                    v1alpha1.SubscriptionState
	CurrentCSV, InstalledCSV string
	// Reason and Message are those of the InstallPlan condition, empty when there
	// is to be none or it stays as it is.
	Reason, Message string
	// Waits: the Subscription does not need the namespace to be resolved.
	Waits bool
	// Writes: the status has to be written.
	Writes bool
}

// Assess returns the decision for each Subscription of the namespace. The error is the
// *olmcore.InputError of Reconcile.
func Assess(in Input) (a Assessment, err error) {
	var v view
	if err = v.fill(&in); err != nil {
		return a, err
	}
	var anyNeeds, anyMoved bool
	var d verdict
	for _, sub := range v.subs {
		v.judge(sub, &d)
		s := SubscriptionAssessment{
			Name: d.sub.Name, Stage: d.seen.stage, State: d.state, CurrentCSV: d.currentCSV, InstalledCSV: d.installedCSV,
			Reason: d.stage.reason, Message: d.stage.message, Waits: !d.needs(), Writes: d.changed,
		}
		if d.skip {
			s.Stage = StageUnknown
		}
		if d.ref != nil {
			s.InstallPlan = d.ref.Name
		}
		s.Whole = v.whole(&d)
		a.Subscriptions = append(a.Subscriptions, s)
		anyNeeds, anyMoved = anyNeeds || d.needs(), anyMoved || d.moved
	}
	a.Gate = v.gate(anyNeeds, anyMoved)
	return a, nil
}
