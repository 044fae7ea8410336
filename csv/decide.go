// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// decision is what one call makes of its input, before any object is built.
type decision struct {
	rule string
	// The status to hold: equal to the recorded one when nothing changes.
	phase   phase
	reason  v1alpha1.ConditionReason
	message string
	// report replaces status.requirementStatus when reported is set; touch writes
	// it without an entry in the history.
	report   []v1alpha1.RequirementStatus
	reported bool
	touch    bool

	actions     []olmcore.Action
	diagnostics []olmcore.Diagnostic
	requeue     time.Duration
}

// machine decides about one CSV that is not being deleted. It holds one pointer
// only: whatever else it held would have to outlive the call with the CSV, and the
// whole Input with it.
type machine struct{ in *Input }

func (m *machine) c() *version { return m.in.ClusterServiceVersion }

func (m *machine) line() chain { return chainOf(m.in) }

// stay keeps the recorded status.
func (m *machine) stay(rule string) decision {
	s := &m.c().Status
	return decision{rule: rule, phase: s.Phase, reason: s.Reason, message: s.Message}
}

func (m *machine) waitFor(rule string, d time.Duration) decision {
	next := m.stay(rule)
	next.requeue = d
	return next
}

func move(rule string, to phase, reason v1alpha1.ConditionReason, message string) decision {
	return decision{rule: rule, phase: to, reason: reason, message: message}
}

func fail(rule string, reason v1alpha1.ConditionReason, message string) decision {
	return move(rule, v1alpha1.CSVPhaseFailed, reason, message)
}

// retry paces a wait that may end without an event.
func (m *machine) retry(d decision) decision {
	elapsed := time.Duration(0)
	if d.phase == m.c().Status.Phase {
		elapsed = since(m.c().Status.LastTransitionTime, m.in.Now)
	}
	d.requeue = wait(elapsed, 5*time.Minute)
	return d
}

// unobserved holds everything until the caller brings what is missing.
func (m *machine) unobserved(what string) decision {
	d := m.waitFor("NotObserved", 5*time.Second)
	d.diagnostics = []olmcore.Diagnostic{{
		Severity: olmcore.Warning, Reason: ReasonNotObserved, Target: olmcore.RefOf(m.c()),
		Message: "the list of " + what + " was not read, so nothing is decided",
	}}
	return d
}

// phase is the recorded phase; what the API does not know counts as none.
func (m *machine) phase() phase {
	switch p := m.c().Status.Phase; p {
	case v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVPhaseSucceeded,
		v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseDeleting:
		return p
	}
	return v1alpha1.CSVPhaseNone
}

// decide runs the gates and then the phase machine.
func (m *machine) decide() decision {
	if !m.in.Neighbours.Complete {
		return m.unobserved("ClusterServiceVersions")
	}
	current := m.phase()
	leaving := current == v1alpha1.CSVPhaseReplacing || current == v1alpha1.CSVPhaseDeleting
	problem := specError(m.c())
	var heir *version
	if !leaving {
		heir = m.line().takenOver()
	}
	frozen := isFrozen(m.c())
	var member membership
	if !leaving && heir == nil && !frozen {
		member = m.membership()
	}
	if a := metadataUpdate(m.c(), problem == "" && !frozen, member); a != nil {
		d := m.stay(ruleMetadata)
		d.actions = []olmcore.Action{a}
		return d
	}
	switch {
	case heir != nil:
		return move("T42", v1alpha1.CSVPhaseReplacing, v1alpha1.CSVReasonBeingReplaced, "being replaced by csv: "+heir.Name)
	case frozen:
		return m.frozen()
	case leaving:
		return m.run(current)
	case problem != "":
		return fail("G4", v1alpha1.CSVReasonInvalidStrategy, problem)
	}
	d, closed := m.groupGates()
	if closed {
		return d
	}
	next := m.run(current)
	if d.requeue > 0 && (next.requeue == 0 || d.requeue < next.requeue) {
		next.requeue = d.requeue
	}
	return next
}

func (m *machine) run(current phase) decision {
	switch current {
	case v1alpha1.CSVPhasePending:
		return m.pending()
	case v1alpha1.CSVPhaseInstallReady:
		return m.installReady()
	case v1alpha1.CSVPhaseInstalling:
		return m.installing()
	case v1alpha1.CSVPhaseSucceeded:
		return m.succeeded()
	case v1alpha1.CSVPhaseFailed:
		return m.failed()
	case v1alpha1.CSVPhaseReplacing:
		return m.replacing()
	case v1alpha1.CSVPhaseDeleting:
		return m.deleting()
	}
	d := move("T01", v1alpha1.CSVPhasePending, v1alpha1.CSVReasonRequirementsUnknown, "requirements not yet checked")
	d.diagnostics = m.unknownModes()
	return d
}

// unknownModes names the install modes that the API does not have, once for each
// CSV.
func (m *machine) unknownModes() []olmcore.Diagnostic {
	var said []olmcore.Diagnostic
	for i, mode := range m.c().Spec.InstallModes {
		switch mode.Type {
		case v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeSingleNamespace,
			v1alpha1.InstallModeTypeMultiNamespace, v1alpha1.InstallModeTypeAllNamespaces:
		default:
			said = append(said, olmcore.Diagnostic{
				Severity: olmcore.Warning, Reason: ReasonUnknownInstallMode, Target: olmcore.RefOf(m.c()), Path: fmt.Sprintf("spec.installModes[%d].type", i),
				Message: fmt.Sprintf("install mode %q is unknown and counts for nothing", mode.Type),
			})
		}
	}
	return said
}

// group returns the one OperatorGroup of the namespace, nil unless there is
// exactly one.
func (m *machine) group() (g *operatorsv1.OperatorGroup, count int) {
	for _, item := range m.in.OperatorGroups.Items {
		if item.Namespace == m.c().Namespace {
			g, count = item, count+1
		}
	}
	if count != 1 {
		return nil, count
	}
	return g, 1
}

func (m *machine) membership() membership {
	g, _ := m.group()
	if g == nil || !m.in.OperatorGroups.Complete {
		return membership{}
	}
	t, ok := groupTargets(g)
	if !ok {
		return membership{}
	}
	return membership{group: g, targets: t}
}

// groupGates closes unless the CSV belongs to exactly one OperatorGroup whose
// targets it supports, and which may provide its APIs.
func (m *machine) groupGates() (decision, bool) {
	if !m.in.OperatorGroups.Complete {
		return m.unobserved("OperatorGroups"), true
	}
	g, count := m.group()
	switch {
	case count == 0:
		return m.retry(fail("G6", v1alpha1.CSVReasonNoOperatorGroup, "csv in namespace with no operatorgroups")), true
	case count > 1:
		return m.retry(fail("G7", v1alpha1.CSVReasonTooManyOperatorGroups,
			"csv created in namespace with multiple operatorgroups, can't pick one automatically")), true
	}
	t, ok := groupTargets(g)
	if !ok {
		d := m.waitFor("G8", 5*time.Second)
		d.diagnostics = []olmcore.Diagnostic{{
			Severity: olmcore.Info, Reason: ReasonGroupNotReady, Target: olmcore.RefOf(g), Path: "status.namespaces",
			Message: "the target namespaces of OperatorGroup " + g.Name + " have not been computed yet",
		}}
		return d, true
	}
	if len(t) == 0 {
		return fail("G8", v1alpha1.CSVReasonNoTargetNamespaces, "no targetNamespaces are matched operatorgroups namespace selection"), true
	}
	supported := modes(m.c().Spec.InstallModes)
	if supported.duplicate() {
		return fail("G9", v1alpha1.CSVReasonInvalidInstallModes,
			fmt.Sprintf("InstallMode list contains duplicates, cannot make set: %v", m.c().Spec.InstallModes)), true
	}
	if problem := supported.check(m.c().Namespace, t); problem != "" {
		return fail("G11", v1alpha1.CSVReasonUnsupportedOperatorGroup, problem), true
	}
	return m.apiGates(g)
}

// accountMissing says that the group prescribes a ServiceAccount that nobody
// found yet: nothing is installed with wider rights than it has.
func (m *machine) accountMissing() (decision, bool) {
	g, _ := m.group()
	if _, confirmed := olmcore.AccountOf(g); confirmed {
		return decision{}, false
	}
	d := m.waitFor("T2A", 10*time.Second)
	d.message = "waiting for OperatorGroup service account " + g.Spec.ServiceAccountName
	return d, true
}

// ruleMetadata is the rule of a decision that writes the CSV's metadata, and so
// nothing else of it.
const ruleMetadata = "G1"
