// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// mayKeepCertificates reports whether the CSV is Pending or Replacing and its Pods may still serve. Without a confirmed
// OperatorGroup it is unknown which account may write, and the result is false.
func mayKeepCertificates(f *facts) bool {
	waits := f.phase == v1alpha1.CSVPhasePending || f.phase == v1alpha1.CSVPhaseReplacing && f.Successor != nil && !f.Followed
	_, confirmed := olmcore.AccountOf(f.group)
	return waits && isCalled(f.csv) && f.group != nil && confirmed && specError(f.csv) == ""
}

// keepCertificates adds the renewal of certificates to a decision that keeps the phase: requests, and updates of
// Secrets, Deployments and caBundles.
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
	d.actions, d.certificates = slices.Concat(d.actions, updateBundles(f)), u.Requests
	needed := certificatesNeeded(f.csv, u.Requests, "the deployments %s need new certificates")
	if len(needed) > 0 && u.Problem != "" {
		needed[0].Message += ": " + u.Problem
	}
	d.Diagnostics = slices.Concat(d.Diagnostics, needed)
	if len(u.Requests) > 0 {
		d.RequeueAfter = soonest(d.RequeueAfter, certificatePace)
	}
	d.RequeueAfter = soonest(d.RequeueAfter, u.Wait)
	// A renewal that has begun waits for events, and for the deadlines above.
	if u.RenewAt.Add(olmcore.ClockTolerance).After(f.Now) {
		d.RequeueAfter = soonest(d.RequeueAfter, untilRenewalBegins(u.RenewAt, f.Now))
	}
	// status.certsRotateAt is updated after the recorded time has passed.
	if recorded := f.csv.Status.CertsRotateAt; recorded != nil && !recorded.After(f.Now) && u.RenewAt.After(f.Now) {
		d.renewAt = &u.RenewAt
	}
	return d
}

// withoutUpkeep adds to a decision that a list was not read. A Pending CSV needs the list only if it ran before.
func withoutUpkeep(f *facts, d decision, list string) decision {
	if f.phase != v1alpha1.CSVPhaseReplacing && !f.hasRun() {
		return d
	}
	unread := olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, olmcore.RefOf(f.csv), "",
		"the list of %s was not read, so the certificates of the operator are not renewed", list)
	d.Diagnostics = append(slices.Clip(d.Diagnostics), unread)
	d.RequeueAfter = soonest(d.RequeueAfter, retryLimit)
	return d
}
