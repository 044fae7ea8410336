// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// mayKeepCertificates reports whether the operator may serve although the CSV is not installed: the CSV waits for its successor
// or for its requirements. Without a confirmed OperatorGroup it is unknown which account may write, and nothing is written.
func mayKeepCertificates(f *facts) bool {
	waits := f.phase == v1alpha1.CSVPhasePending || f.phase == v1alpha1.CSVPhaseReplacing && f.Successor != nil && !f.Followed
	_, confirmed := olmcore.AccountOf(f.group)
	return waits && isCalled(f.csv) && f.group != nil && confirmed && specError(f.csv) == ""
}

// keepCertificates adds to a decision to wait what renews the certificates that the CSV owns, and what makes their clients
// trust them.
//
// Differs: OLM does nothing for such a version, so that its webhooks and APIServices fail once its certificate expires.
func keepCertificates(f *facts, d decision) decision {
	if d.Phase != f.phase || d.Rule == ruleNotObserved || !mayKeepCertificates(f) {
		return d
	}
	lists := slices.Concat(
		read.Missing(f.OperatorGroups, "OperatorGroups"), read.Missing(f.Deployments, "Deployments"),
		read.Missing(f.CustomResourceDefinitions, "CustomResourceDefinitions"), read.Missing(f.APIServices, "APIServices"), servingUnread(f))
	if len(lists) > 0 {
		return withoutUpkeep(f, d, lists[0])
	}
	u := f.certificates.Upkeep()
	d.actions = slices.Concat(d.actions, u.Actions)
	if !u.Keeps {
		return d
	}
	d.actions, d.certificates = slices.Concat(d.actions, f.trust()), u.Requests
	needed := certificatesNeeded(f.csv, u.Requests, "the deployments %s need new certificates")
	d.Diagnostics = slices.Concat(d.Diagnostics, needed)
	if len(u.Requests) > 0 {
		d.RequeueAfter = soonest(d.RequeueAfter, certificatePace)
	}
	d.RequeueAfter = soonest(d.RequeueAfter, u.Wait)
	// A renewal that has begun waits for events, and for the deadlines above.
	if u.RenewAt.Add(olmcore.ClockTolerance).After(f.Now) {
		d.RequeueAfter = soonest(d.RequeueAfter, untilRenewalBegins(u.RenewAt, f.Now))
	}
	// The status says when the next renewal is once the recorded time has passed.
	if recorded := f.csv.Status.CertsRotateAt; recorded != nil && !recorded.After(f.Now) && u.RenewAt.After(f.Now) {
		d.renewAt = &u.RenewAt
	}
	return d
}

// withoutUpkeep adds to a decision that a list was not read. A Pending CSV needs the list only if it ran before.
func withoutUpkeep(f *facts, d decision, list string) decision {
	if f.phase == v1alpha1.CSVPhaseReplacing {
		missing, _ := f.unread(false, list)
		d.Diagnostics = slices.Concat(d.Diagnostics, missing.Diagnostics)
		d.RequeueAfter = soonest(d.RequeueAfter, missing.RequeueAfter)
	}
	return d
}
