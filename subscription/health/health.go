// SPDX-License-Identifier: Apache-2.0

// Package health reports for each Subscription of a namespace whether it is installed, and if not, why. Each [Health]
// combines the state of the Subscription, its InstallPlan and its ClusterServiceVersion into one [Phase]. It also
// names the object that blocks the Subscription, the reason, the start time and the advice for the user.
//
// [Of] writes nothing, and [Gather] reads its input. [Summarize] counts the answers for a namespace, and
// [Summary.Merge] adds up the answers for a fleet.
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

// Health describes the state of one Subscription. Its JSON field names are stable.
type Health struct {
	// Subscription is the Subscription that this Health describes. It has no resourceVersion.
	Subscription olmcore.Ref `json:"subscription"`
	Phase        Phase       `json:"phase"`
	// Reason is a CamelCase word that describes the state of Object. Message is a sentence that describes the same state.
	// Both may be empty if the Subscription is healthy.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Object is the object because of which the phase is not Installed. In the phase Installed, Object is the
	// ClusterServiceVersion. Object has no resourceVersion. It has no UID if only its name is known.
	Object olmcore.Ref `json:"object,omitzero"`
	// Since is the time, in UTC, at which Object entered its state. It is zero if this time is not known.
	Since time.Time `json:"since,omitzero"`
	// Advice is one sentence with instructions for the user. It is empty if the user can only wait.
	Advice string `json:"advice,omitempty"`
}

// Assess returns the Health of each Subscription of a namespace, by the name of the Subscription. It returns an
// *olmcore.InputError if the input is invalid.
func Assess(in Input) (map[string]Health, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	assessment, err := subscription.Assess(in.Input)
	if err != nil {
		return nil, err
	}
	n := newNamespace(&in, assessment.Blocked != "")
	all := make(map[string]Health, len(assessment.Decisions))
	for i := range assessment.Decisions {
		v := &assessment.Decisions[i]
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

// longTime is the time after which a state that is normally short gets advice.
const longTime = 10 * time.Minute

// finding is a Health without its advice. The situation now gets advice at once, and late gets it after longTime. The
// texts what and remove fill the placeholders of the advice.
type finding struct {
	Health
	now, late    situation
	what, remove string
}

// namespace contains the facts that all Subscriptions of a namespace share.
type namespace struct {
	now         time.Time
	name        string
	blocked     bool
	groups      int // the number of OperatorGroups
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

// health returns the finding for a Subscription. It checks what blocks every step first, then the InstallPlan, then the
// ClusterServiceVersion.
func (n *namespace) health(v *subscription.Decision) finding {
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
	// A Subscription that waits for an InstallPlan does not wait for a resolution, which may fail because of other
	// Subscriptions. A version that does not work blocks the Subscription, even if the resolution fails, too.
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
	case subscription.StageUnverified,
		subscription.StageNotYetReconciled,
		subscription.StageRequiresApproval: // an installed operator does not need its InstallPlan
		if v.CSV == nil {
			return n.plan(v)
		}
	}
	return n.version(v)
}

// comesUp reports whether the installation of a version has started, and the version does not work.
func comesUp(c *v1alpha1.ClusterServiceVersion) bool {
	return c != nil && c.DeletionTimestamp == nil && c.Status.Phase != v1alpha1.CSVPhaseNone && c.Status.Phase != v1alpha1.CSVPhaseSucceeded
}

// deleting returns the finding for a Subscription that is being deleted.
func (n *namespace) deleting(v *subscription.Decision, self olmcore.Ref) finding {
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
