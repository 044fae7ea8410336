// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

const (
	info    = olmcore.Info
	warning = olmcore.Warning
	failure = olmcore.Error
)

// verdict is what one Subscription's status should be, and why. It starts as
// what the status is; building it allocates nothing unless something is to be
// said or written.
type verdict struct {
	sub  *v1alpha1.Subscription
	skip bool

	currentCSV, installedCSV string
	state                    v1alpha1.SubscriptionState
	generation               int
	ref                      *corev1.ObjectReference
	stage                    wish // the InstallPlan conditions
	resolution               wish // ResolutionFailed
	unpack                   wish // BundleUnpacking or BundleUnpackFailed
	health                   wish // CatalogSourcesUnhealthy
	healthChanged            bool // catalogHealth has to be written
	deprecation              deprecation
	cause                    olmcore.Cause

	seen       sighting
	shown      Stage // what the conditions will say
	csvPresent bool
	changed    bool // the status has to be written
	moved      bool // in what a resolution or the gate depends on
	wait       time.Duration

	remembers bool // v.memo.history is of an earlier call

	transitions []olmcore.Transition
	diagnostics []olmcore.Diagnostic
}

// judge decides one Subscription's status into d, which may hold an earlier verdict.
func (v *view) judge(sub *v1alpha1.Subscription, d *verdict) {
	s := &sub.Status
	if d.sub != nil {
		*d = verdict{} // a literal with these fields would be made elsewhere and copied
	}
	d.sub, d.currentCSV, d.installedCSV, d.state = sub, s.CurrentCSV, s.InstalledCSV, s.State
	d.generation, d.ref = s.InstallPlanGeneration, s.InstallPlanRef
	d.resolution.keep, d.unpack.keep, d.health.keep = true, true, true
	// Nothing calls for most of the steps from here on in a Subscription at rest, and a
	// call costs as much as what many of them do.
	if v.keepsHistory() {
		v.recall(d)
	}
	if sub.Spec == nil {
		d.skip = true
		d.report(failure, ReasonInvalidSpec, "spec", "the Subscription has no spec")
		return
	}
	if sub.Spec.Package == "" || sub.Spec.CatalogSource == "" || sub.Spec.CatalogSourceNamespace == "" {
		d.report(failure, ReasonInvalidSpec, "spec", "the Subscription lacks package, source or sourceNamespace")
	}
	v.applyAnswer(d)
	if d.ref == nil {
		v.adopt(d)
	}
	v.follow(d)
	v.judgeState(d)
	if !d.csvPresent {
		v.followReplacement(d)
	}
	if d.seen.stage == StageMissing {
		v.judgeMissing(d)
	}
	if !d.csvPresent {
		v.judgeWedge(d)
	}
	v.publish(d)
	v.judgeHealth(d)
	v.judgeDeprecation(d)
	if d.changed = d.differs(); d.changed {
		d.moved = d.moves()
		if d.ref == s.InstallPlanRef && !isMirror(s.Install, d.ref) {
			d.report(info, ReasonRefMirrorMismatch, "status.installplan", "status.installplan did not repeat status.installPlanRef")
		}
	}
	if d.changed || v.keepsHistory() {
		v.tell(d)
	}
}

// differs reports whether the status that is wanted is another than the one
// that is there.
func (d *verdict) differs() bool {
	s := &d.sub.Status
	if d.currentCSV != s.CurrentCSV || d.installedCSV != s.InstalledCSV || d.state != s.State ||
		d.generation != s.InstallPlanGeneration || d.healthChanged || d.changedReference() {
		return true
	}
	return !isMirror(s.Install, d.ref) || d.conditionsDiffer()
}

// moves reports whether the status changes in more than what it says of
// catalogs: no resolution looks at that, and none has to wait for its write.
func (d *verdict) moves() bool {
	rest := *d
	rest.health, rest.healthChanged, rest.deprecation = wish{keep: true}, false, deprecation{}
	return rest.differs()
}

// changedReference reports whether the Subscription is to refer to another plan,
// or to none any more.
func (d *verdict) changedReference() bool { return d.ref != d.sub.Status.InstallPlanRef }

// setReference makes the Subscription refer to an observed plan.
func (d *verdict) setReference(p *v1alpha1.InstallPlan) {
	if have := d.sub.Status.InstallPlanRef; have != nil && have.Name == p.Name && have.UID == p.UID && have.Namespace == p.Namespace {
		d.ref = have
		return
	}
	d.ref = &corev1.ObjectReference{
		APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind,
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
	}
}

// clearReference makes the Subscription forget its plan, so that the namespace
// is resolved again.
func (d *verdict) clearReference() {
	d.ref, d.currentCSV, d.state = nil, "", v1alpha1.SubscriptionStateNone
	d.cause = olmcore.Cause{Reason: ReasonReferenceCleared, Message: "the referenced InstallPlan cannot bring the operator any more"}
}

func (d *verdict) requeue(after time.Duration) {
	if after > 0 && (d.wait == 0 || after < d.wait) {
		d.wait = after
	}
}

func (d *verdict) report(severity olmcore.Severity, reason, path string, message ...string) {
	d.diagnostics = append(d.diagnostics, olmcore.Diagnostic{
		Severity: severity, Reason: reason, Message: strings.Join(message, ""),
		Target: olmcore.RefOf(d.sub).Unversioned(), Path: path,
	})
}

// needs reports whether the namespace has to be resolved for this Subscription:
// not while it waits for a plan that somebody will run or that may only be out
// of sight, and not while it is being deleted.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog,
// syncResolvingNamespace. Differs: a plan that was created but never got its
// content does not count as one to wait for.
func (d *verdict) needs() bool {
	if d.skip || d.sub.DeletionTimestamp != nil || d.seen.stage == StageUnverified {
		return false
	}
	if d.ref == nil || d.seen.invalid || d.state != v1alpha1.SubscriptionStateUpgradePending {
		return true
	}
	return d.seen.plan != nil && isStatusless(d.seen.plan)
}

// status returns the wanted status, as a copy.
func (v *view) status(d *verdict) *v1alpha1.Subscription {
	kept := *d.sub
	kept.Status.Install, kept.Status.InstallPlanRef, kept.Status.Conditions = nil, d.ref, nil
	after := kept.DeepCopy()
	s := &after.Status
	s.CurrentCSV, s.InstalledCSV, s.State, s.InstallPlanGeneration = d.currentCSV, d.installedCSV, d.state, d.generation
	if d.ref != nil {
		s.Install = v1alpha1.NewInstallPlanReference(d.ref)
	}
	s.Conditions = d.conditions(v.now)
	if d.healthChanged {
		s.CatalogHealth = v.catalogHealth(d.sub.Status.CatalogHealth)
	}
	if now := olmcore.Timestamp(v.now); now.After(s.LastUpdated.Time) {
		s.LastUpdated = now
	}
	return after
}

func isMirror(m *v1alpha1.InstallPlanReference, ref *corev1.ObjectReference) bool {
	if m == nil || ref == nil {
		return m == nil && ref == nil
	}
	return m.APIVersion == ref.APIVersion && m.Kind == ref.Kind && m.Name == ref.Name && m.UID == ref.UID
}
