// SPDX-License-Identifier: Apache-2.0

// Package health answers for each Subscription of a namespace "is it installed yet, and what blocks?": one [Phase] of
// the Subscription, its InstallPlan and its ClusterServiceVersion taken together, the object that blocks, since when,
// why, and what the user can do. [Of] writes nothing; [Gather] reads what it needs. [Summarize] counts the answers of a
// namespace, and [Summary.Merge] those of a fleet.
package health

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/internal/relation"
	"github.com/olmcore/olm/subscription/resolution"
)

// Health is the answer for one Subscription. Its JSON has stable names.
type Health struct {
	// Subscription is the one that the answer is about.
	Subscription olmcore.Ref `json:"subscription"`
	Phase        Phase       `json:"phase"`
	// Reason is a word, and Message a sentence, for what Object says; both may be empty when all is well.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Object is what keeps the Subscription from being Installed; the ClusterServiceVersion when it is Installed. It has
	// no resourceVersion, and no UID where the object is only known by name.
	Object olmcore.Ref `json:"object,omitzero"`
	// Since is the time from which the objects say that this is so, in UTC; zero when they do not say. It stays while the
	// phase does, whatever becomes of the message.
	Since time.Time `json:"since,omitzero"`
	// Advice is what the user can do; empty when there is nothing but to wait.
	Advice string `json:"advice,omitempty"`
}

// Of returns the health of each Subscription of a namespace by its name. The error is an *olmcore.InputError.
func Of(in Input) (map[string]Health, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	assessment, err := subscription.Assess(in.Input)
	if err != nil {
		return nil, err
	}
	n := newNamespace(&in, assessment.Blocked != "")
	all := make(map[string]Health, len(assessment.Verdicts))
	for i := range assessment.Verdicts {
		v := &assessment.Verdicts[i]
		f := n.health(v)
		f.Subscription, f.Since = olmcore.RefOf(v.Subscription).Unversioned(), f.Since.UTC()
		if f.now == "" && !f.Since.IsZero() && n.now.Sub(f.Since) >= longTime {
			f.now = f.late
		}
		f.Advice = f.fill(f.now)
		all[v.Subscription.Name] = f.Health
	}
	return all, nil
}

// longTime is how long a step on the way may take before there is advice about it.
const longTime = 10 * time.Minute

// finding is a Health in the making: its advice is a situation, with what that adds, now or once it has lasted.
type finding struct {
	Health
	now, late    situation
	what, remove string
}

// namespace is what counts for all its Subscriptions.
type namespace struct {
	now         time.Time
	name        string
	blocked     bool
	groups      int // how many OperatorGroups there are
	csvs        map[string]*v1alpha1.ClusterServiceVersion
	deployments olmcore.Observed[*appsv1.Deployment]
	pods        []*corev1.Pod
	heldBack    map[string]*resolution.HeldBack
}

func newNamespace(in *Input, blocked bool) *namespace {
	n := &namespace{
		now: in.Now, name: in.Namespace, blocked: blocked, groups: len(in.OperatorGroups.Items), csvs: relation.ByName(in.ClusterServiceVersions.Items),
		deployments: in.Deployments, pods: in.Pods.Items, heldBack: make(map[string]*resolution.HeldBack, len(in.HeldBack)),
	}
	for i := range in.HeldBack {
		n.heldBack[in.HeldBack[i].Subscription] = &in.HeldBack[i]
	}
	return n
}

// health answers without advice about delays: what stops everything first, then the plan, then what it brought.
func (n *namespace) health(v *subscription.Verdict) finding {
	s := v.Subscription
	switch self := olmcore.RefOf(s).Unversioned(); {
	case s.DeletionTimestamp != nil:
		return n.deleting(v, self)
	case s.Spec == nil:
		return finding{now: specMissing, Health: Health{Phase: Failed, Object: self, Since: s.CreationTimestamp.Time,
			Reason: subscription.ReasonInvalidSpec, Message: "the Subscription has no spec"}}
	case v.Plan.Invalid:
		return finding{now: referenceInvalid, Health: Health{Phase: Stuck, Object: self, Since: s.Status.LastUpdated.Time,
			Reason: subscription.ReasonRefInvalid, Message: "status.installPlanRef names no InstallPlan of this namespace"}}
	}
	// Who waits for a plan does not wait for a resolution, which may fail for others. A version that does not come up is
	// what blocks: a resolution beside it fails because of it, or for others.
	if n.blocked || !comesUp(v.CSV) && (!v.Waits || v.Plan.Stage == subscription.StageUnverified && v.CSV != nil) {
		if f, ok := n.resolution(v); ok {
			return f
		}
	}
	switch v.Plan.Stage {
	case subscription.StageNoPlan, subscription.StageMissing:
		if v.CSV == nil && !(v.Plan.Stage == subscription.StageMissing && v.Status.InstallPlanRef != nil && v.Plan.Outlived) {
			return n.resolving(v)
		}
	case subscription.StageInstalling, subscription.StagePlanning, subscription.StageFailed, subscription.StageUnknown:
		return n.plan(v)
	case subscription.StageUnverified, subscription.StageNotYetReconciled, subscription.StageRequiresApproval: // an operator that runs does not depend on its plan
		if v.CSV == nil {
			return n.plan(v)
		}
	}
	return n.version(v)
}

// comesUp reports whether a version was begun to be installed and does not work yet, or any more.
func comesUp(c *v1alpha1.ClusterServiceVersion) bool {
	return c != nil && c.DeletionTimestamp == nil && c.Status.Phase != v1alpha1.CSVPhaseNone && c.Status.Phase != v1alpha1.CSVPhaseSucceeded
}

// deleting is about a Subscription that is being deleted.
func (n *namespace) deleting(v *subscription.Verdict, self olmcore.Ref) finding {
	s := v.Subscription
	f := finding{Health: Health{Phase: Deleting, Object: self, Since: s.DeletionTimestamp.Time, Message: "the Subscription is being deleted"}}
	if n.csvs[v.Status.InstalledCSV] != nil {
		f.Message += "; CSV " + v.Status.InstalledCSV + " stays"
	}
	if len(s.Finalizers) > 0 {
		f.now, f.what = finalizersHeld, listed(s.Finalizers)
	}
	return f
}
