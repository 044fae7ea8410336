// SPDX-License-Identifier: Apache-2.0

// Package health answers for each Subscription of a namespace "is it installed yet, and what blocks?": one [Phase] of
// the Subscription, its InstallPlan and its ClusterServiceVersion taken together, the object that blocks, since when,
// why, and what the user can do. [Of] writes nothing.
package health

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Phase is where a Subscription stands together with its InstallPlan and its ClusterServiceVersion.
type Phase string

// Phases. Installed is the only healthy end; Degraded, Failed and Stuck do not end without a change from outside, or
// only with luck; the others go on.
const (
	// Resolving: it is not known yet what has to be installed.
	Resolving Phase = "Resolving"
	// Unpacking: bundle images are being unpacked.
	Unpacking Phase = "Unpacking"
	// WaitingForApproval: the InstallPlan has to be approved.
	WaitingForApproval Phase = "WaitingForApproval"
	// Installing: the first version is being installed.
	Installing Phase = "Installing"
	// Upgrading: a newer version is being installed.
	Upgrading Phase = "Upgrading"
	// Installed: the operator runs, and no newer one is known that could be installed; the Message says so when the
	// catalogs cannot be asked.
	Installed Phase = "Installed"
	// Degraded: an operator is installed, and it has stopped working or cannot be upgraded.
	Degraded Phase = "Degraded"
	// Failed: nothing that works is installed, and what was tried has failed.
	Failed Phase = "Failed"
	// Stuck: nothing failed, and yet nothing will ever happen.
	Stuck Phase = "Stuck"
	// Deleting: the Subscription is being deleted. What it installed stays, and no newer version is looked for.
	Deleting Phase = "Deleting"
)

// ReasonCSVAbsent: the version that a complete plan was to bring does not exist.
const ReasonCSVAbsent = "CSVAbsent"

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

// Blocks reports whether Object keeps the Subscription from being Installed.
func (h *Health) Blocks() bool { return h.Phase != Installed }

// Of returns the health of each Subscription of a namespace by its name. The error is an *olmcore.InputError.
func Of(in Input) (map[string]Health, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	assessment, err := subscription.Assess(in.Input)
	if err != nil {
		return nil, err
	}
	n := namespace{now: in.Now, name: in.Namespace, blocked: assessment.Blocked != "", csvs: relation.ByName(in.ClusterServiceVersions.Items)}
	all := make(map[string]Health, len(assessment.Verdicts))
	for i := range assessment.Verdicts {
		v := &assessment.Verdicts[i]
		h := n.health(v)
		if h.Advice == "" && !h.Since.IsZero() && n.now.Sub(h.Since) >= longTime {
			h.Advice = adviceOnDelay(v, h)
		}
		h.Subscription, h.Since = olmcore.RefOf(v.Subscription).Unversioned(), h.Since.UTC()
		all[v.Subscription.Name] = h
	}
	return all, nil
}

// namespace is what counts for all its Subscriptions.
type namespace struct {
	now     time.Time
	name    string
	blocked bool
	csvs    map[string]*v1alpha1.ClusterServiceVersion
}

// health answers without advice about delays: what stops everything first, then the plan, then what it brought.
func (n *namespace) health(v *subscription.Verdict) Health {
	s := v.Subscription
	self := olmcore.RefOf(s).Unversioned()
	switch at := s.DeletionTimestamp; {
	case at != nil:
		h := Health{Phase: Deleting, Object: self, Since: at.Time, Message: "the Subscription is being deleted"}
		if n.csvs[v.Status.InstalledCSV] != nil {
			h.Message += "; CSV " + v.Status.InstalledCSV + " stays"
		}
		if len(s.Finalizers) > 0 {
			h.Advice = "It waits for who put the finalizers " + listed(s.Finalizers) + " on it."
		}
		return h
	case s.Spec == nil:
		return Health{Phase: Failed, Object: self, Since: s.CreationTimestamp.Time, Reason: subscription.ReasonInvalidSpec,
			Message: "the Subscription has no spec", Advice: "Delete the Subscription and create it with a spec."}
	case v.Plan.Invalid:
		return Health{Phase: Stuck, Object: self, Since: s.Status.LastUpdated.Time, Reason: subscription.ReasonRefInvalid,
			Message: "status.installPlanRef names no InstallPlan of this namespace", Advice: "Clear status.installPlanRef."}
	}
	// Who waits for a plan does not wait for a resolution, which may fail for others.
	if !v.Waits || n.blocked || v.Plan.Stage == subscription.StageUnverified && v.CSV != nil {
		if h, ok := n.resolution(v); ok {
			return h
		}
	}
	switch v.Plan.Stage {
	case subscription.StageNoPlan, subscription.StageMissing:
		if v.CSV == nil && !(v.Plan.Stage == subscription.StageMissing && v.Status.InstallPlanRef != nil && v.Plan.Outlived) {
			return resolving(v)
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

// resolution is about what keeps a resolution from becoming a plan.
func (n *namespace) resolution(v *subscription.Verdict) (h Health, blocks bool) {
	h, blocks = condition(v, v1alpha1.SubscriptionResolutionFailed)
	h.Advice = "Change the Subscriptions, the installed operators or the catalogs that the message names."
	if !blocks {
		h, blocks = condition(v, v1alpha1.SubscriptionBundleUnpackFailed)
		h.Advice = "Make the bundle image available, or follow the advice of the message."
	}
	h.Phase = n.failure(v)
	if !blocks {
		h, blocks = condition(v, v1alpha1.SubscriptionBundleUnpacking)
		h.Phase = Unpacking
	} else if n.blocked {
		h.Advice = "Leave exactly one OperatorGroup in the namespace."
	}
	h.Object = olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: n.name}
	return h, blocks
}

// failure is the phase of what has failed.
func (n *namespace) failure(v *subscription.Verdict) Phase {
	if c := n.csvs[v.Status.InstalledCSV]; c != nil && c.Status.Phase == v1alpha1.CSVPhaseSucceeded && c.DeletionTimestamp == nil && !c.IsCopied() {
		return Degraded
	}
	return Failed
}

// condition returns what a condition says, or is made to say; since when is known only of one that is written already.
func condition(v *subscription.Verdict, t v1alpha1.SubscriptionConditionType) (h Health, isTrue bool) {
	c := v.Status.GetCondition(t)
	if c.Status != corev1.ConditionTrue {
		return Health{}, false
	}
	h = Health{Reason: c.Reason, Message: c.Message}
	if slices.Contains(v.Subscription.Status.Conditions, c) {
		h.Since = relation.Time(c.LastTransitionTime)
	}
	return h, true
}

// resolving is about a Subscription whose namespace has to be resolved.
func resolving(v *subscription.Verdict) Health {
	s := v.Subscription
	h := Health{
		Phase: Resolving, Object: olmcore.RefOf(s).Unversioned(), Message: "the namespace has to be resolved",
		Since: relation.Latest(s.CreationTimestamp.Time, s.Status.LastUpdated.Time),
	}
	if v.Plan.Stage == subscription.StageMissing {
		h.Reason, h.Message = v1alpha1.ReferencedInstallPlanNotFound, "the InstallPlan was deleted"
	}
	if catalogs, ok := condition(v, v1alpha1.SubscriptionCatalogSourcesUnhealthy); ok {
		h.Object = olmcore.Ref{
			APIVersion: v1alpha1.CatalogSourceCRDAPIVersion, Kind: v1alpha1.CatalogSourceKind, Namespace: s.Spec.CatalogSourceNamespace, Name: s.Spec.CatalogSource,
		}
		h.Since, h.Reason, h.Message, h.Advice = catalogs.Since, catalogs.Reason, catalogs.Message, "Make the catalogs available, or remove those that are not needed."
	}
	return h
}

// progress is the phase of what is on its way.
func progress(v *subscription.Verdict) Phase {
	if installed := v.Subscription.Status.InstalledCSV; installed != "" && installed != v.Status.CurrentCSV {
		return Upgrading
	}
	return Installing
}

// plan is about a plan that is not complete.
func (n *namespace) plan(v *subscription.Verdict) Health {
	name, is, plan := v.Plan.Name, v.Plan.Stage, v.Plan.Plan
	h := Health{
		Phase: progress(v), Reason: string(is), Message: "InstallPlan " + name + " is " + string(is), Since: v.Subscription.Status.LastUpdated.Time,
		Object: olmcore.Ref{APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Namespace: n.name, Name: name, UID: v.Plan.UID},
	}
	if plan == nil { // not visible: nothing is known that is not recorded
		return h
	}
	h.Since = enteredAt(v, plan)
	h.Message = cmp.Or(relation.Message(plan), plan.Status.Message, h.Message)
	switch {
	case plan.DeletionTimestamp != nil:
		h.Phase, h.Since, h.Message = Resolving, plan.DeletionTimestamp.Time, "InstallPlan "+name+" is being deleted"
	case is == subscription.StageNotYetReconciled && relation.Statusless(plan) && n.now.Sub(plan.CreationTimestamp.Time) >= subscription.AuditGrace:
		h.Phase, h.Message, h.Advice = Stuck, "InstallPlan "+name+" was never given its steps", "Delete the InstallPlan."
	case is == subscription.StageInstalling && relation.Installed(plan).Reason == v1alpha1.InstallPlanReasonInstallCheckFailed:
		h.Advice = "Repair the OperatorGroup or the ServiceAccount that the message is about."
		if n.now.Sub(relation.InstalledAt(plan)) >= subscription.AuditGrace {
			h.Phase = Stuck
		}
	case is == subscription.StageRequiresApproval && !plan.Spec.Approved: // else it is about to run
		h.Phase, h.Advice = WaitingForApproval, "Review the InstallPlan and set its spec.approved to true."
	case is == subscription.StageRequiresApproval:
	case is == subscription.StageFailed:
		h.Phase, h.Reason, h.Advice = n.failure(v), relation.FailureReason(plan), "Remove the cause and delete the InstallPlan to try again."
		if relation.IsRetried(plan) {
			h.Advice = "Remove the cause; the InstallPlan is tried again by itself."
		}
	case is == subscription.StageUnknown:
		h.Phase, h.Reason, h.Advice = Stuck, subscription.ReasonUnknownPhase, "Repair the InstallPlan's status, or delete the InstallPlan."
	case hasPendingLookup(plan):
		h.Phase = Unpacking
	}
	return h
}

// enteredAt returns since when a plan is in the stage in which it is seen.
func enteredAt(v *subscription.Verdict, plan *v1alpha1.InstallPlan) time.Time {
	created, updated := plan.CreationTimestamp.Time, relation.InstalledAt(plan)
	switch {
	case v.Plan.Recorded == v.Plan.Stage && !v.Plan.RecordedAt.IsZero() && !v.Plan.RecordedAt.Before(created):
		return v.Plan.RecordedAt
	case v.Plan.Stage == subscription.StageFailed && !updated.IsZero():
		return updated
	case v.Plan.Stage == subscription.StageInstalling && plan.Status.StartTime != nil:
		return plan.Status.StartTime.Time
	}
	return created
}

func hasPendingLookup(plan *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(plan.Status.BundleLookups, func(b v1alpha1.BundleLookup) bool {
		return slices.ContainsFunc(b.Conditions, func(c v1alpha1.BundleLookupCondition) bool {
			return c.Type == v1alpha1.BundleLookupPending && c.Status == corev1.ConditionTrue
		})
	})
}

// version is about the version that a Subscription follows, once its plan is over.
func (n *namespace) version(v *subscription.Verdict) Health {
	c := v.CSV
	if c == nil {
		return n.absent(v)
	}
	h := Health{
		Phase: progress(v), Reason: string(c.Status.Reason), Message: c.Status.Message, Object: olmcore.RefOf(c).Unversioned(),
		Since: cmp.Or(c.Status.LastTransitionTime, &c.CreationTimestamp).Time,
	}
	replaced := n.csvs[c.Spec.Replaces]
	if replaced != nil {
		h.Phase = Upgrading
	}
	switch phase := c.Status.Phase; {
	case phase == v1alpha1.CSVPhaseSucceeded && c.DeletionTimestamp != nil:
		h.Phase, h.Since, h.Message = Degraded, c.DeletionTimestamp.Time, "CSV "+c.Name+" is being deleted"
	case phase == v1alpha1.CSVPhaseSucceeded:
		h.Phase = Installed
		if catalogs, ok := condition(v, v1alpha1.SubscriptionCatalogSourcesUnhealthy); ok {
			h.Reason, h.Message, h.Advice = catalogs.Reason, catalogs.Message, "Make the catalogs available: until then no newer version is seen."
		}
	case phase == v1alpha1.CSVPhaseFailed || phase == v1alpha1.CSVPhaseUnknown:
		h.Phase, h.Advice = Failed, "Look at the ClusterServiceVersion's status and its Deployments."
		if hasSucceeded(c) || replaced != nil && hasSucceeded(replaced) {
			h.Phase = Degraded
		}
	case phase == v1alpha1.CSVPhaseReplacing || phase == v1alpha1.CSVPhaseDeleting:
		h.Phase = Upgrading
	case phase == v1alpha1.CSVPhasePending && (strings.Contains(string(c.Status.Reason), "NotMet") || c.Status.Reason == v1alpha1.CSVReasonRequirementsNotMet):
		h.Advice = "Provide what status.requirementStatus of the ClusterServiceVersion lists as not met."
		if names := unmet(c); len(names) > 0 {
			h.Message, h.Advice = strings.TrimPrefix(h.Message+": "+listed(names), ": "), "Provide what is not met: "+listed(names)+"."
		}
	}
	return h
}

// absent is about a version that its plan did not bring, or that was removed.
func (n *namespace) absent(v *subscription.Verdict) Health {
	name := v.Status.CurrentCSV
	if name == "" {
		return resolving(v)
	}
	h := Health{
		Phase: progress(v), Reason: ReasonCSVAbsent, Message: "CSV " + name + " does not exist",
		Since:  relation.Latest(v.Subscription.Status.LastUpdated.Time, relation.InstalledAt(v.Plan.Plan)),
		Object: olmcore.Ref{APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind, Namespace: n.name, Name: name},
	}
	isLong := n.now.Sub(h.Since) >= subscription.AuditGrace
	switch {
	case n.csvs[name] != nil:
		h.Reason, h.Message = subscription.ReasonCopiedCSVReferenced, "CSV "+name+" is the copy of another namespace's operator"
		h.Advice = "Delete the Subscription, or the operator whose copy is in its place."
		if isLong {
			h.Phase = Stuck
		}
	case isLong:
		h.Phase, h.Reason, h.Advice = Stuck, subscription.ReasonWedgedUpgradePending, "Delete the InstallPlan to install the version again."
		if v.Plan.Plan == nil {
			h.Advice = "Delete the Subscription and create it again to install the version again."
		}
	}
	return h
}

// hasSucceeded reports whether a CSV worked once.
func hasSucceeded(c *v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(p v1alpha1.ClusterServiceVersionCondition) bool {
		return p.Phase == v1alpha1.CSVPhaseSucceeded
	})
}

// longTime is how long a step on the way may take before there is advice about it.
const longTime = 10 * time.Minute

// maxNamed is how many objects a message names at most.
const maxNamed = 5

// adviceOnDelay is for what goes on by itself, and should have got further by now.
func adviceOnDelay(v *subscription.Verdict, h Health) string {
	switch h.Phase {
	case Unpacking:
		return "Look at the Jobs that unpack the bundles, and whether the bundle images can be pulled."
	case Resolving:
		return "Look whether the controller runs and reaches the catalogs."
	case Installing, Upgrading:
	default:
		return ""
	}
	switch {
	case h.Object.Kind == v1alpha1.ClusterServiceVersionKind:
		return "Look at the ClusterServiceVersion's status and its Deployments."
	case v.Plan.Plan == nil || v.Plan.Stage != subscription.StageInstalling:
		return "Look whether the controller runs and sees the InstallPlan."
	}
	if open := unfinished(v.Plan.Plan); len(open) > 0 {
		return "Look at what the InstallPlan's steps wait for: " + listed(open) + "."
	}
	return "Look whether the controller runs: no step of the InstallPlan is left."
}

// unfinished names the steps of a plan that are not done.
func unfinished(plan *v1alpha1.InstallPlan) []string {
	var names []string
	for _, s := range plan.Status.Plan {
		if s != nil && s.Status != v1alpha1.StepStatusCreated && s.Status != v1alpha1.StepStatusPresent {
			names = append(names, s.Resource.Kind+" "+s.Resource.Name+" is "+string(cmp.Or(s.Status, v1alpha1.StepStatusUnknown)))
		}
	}
	return names
}

// listed joins names, and says how many more there are.
func listed(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return strings.Join(names[:maxNamed], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(names, ", ")
}

// unmet names the requirements of a CSV that are not met.
func unmet(c *v1alpha1.ClusterServiceVersion) []string {
	var names []string
	for _, r := range c.Status.RequirementStatus {
		if r.Status == v1alpha1.RequirementStatusReasonPresent {
			continue
		}
		name := r.Kind + " " + r.Name + " is " + string(r.Status)
		if i := slices.IndexFunc(r.Dependents, func(d v1alpha1.DependentStatus) bool { return d.Status == v1alpha1.DependentStatusReasonNotSatisfied }); i >= 0 {
			name += " (" + r.Dependents[i].Kind + ": " + r.Dependents[i].Message + ")"
		}
		names = append(names, name)
	}
	return names
}
