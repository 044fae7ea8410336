// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// renewal contains the additions to a decision that keep the certificates of an operator valid. The zero value adds
// nothing.
type renewal struct {
	actions     []olmcore.Action
	requests    []serving.Request
	diagnostics []olmcore.Diagnostic
	// requeueAfter is the time until the next step. 0 means that no step is planned.
	requeueAfter time.Duration
	// renewAt is the new status.certsRotateAt. Nil keeps the recorded time.
	renewAt *time.Time
}

// nextRenewal returns a deadline for the next renewal of a certificate. If the CSV changes from Failed to Succeeded, it
// also updates status.certsRotateAt.
func nextRenewal(f *facts, next phase) (r renewal) {
	if f.phase == v1alpha1.CSVPhaseFailed && next == v1alpha1.CSVPhaseSucceeded {
		r.renewAt = newRenewalTime(f)
	}
	if at := f.services.Certificates.RenewAt; !at.IsZero() {
		r.requeueAfter = untilRenewalBegins(at, f.now)
	}
	return r
}

// newRenewalTime returns the time at which a certificate must be replaced, or the zero time if there is none. It is nil
// if the status already contains that time.
func newRenewalTime(f *facts) *time.Time {
	recorded := f.csv.Status.CertsRotateAt
	if recorded == nil {
		recorded = &metav1.Time{}
	}
	at := f.services.Certificates.RenewAt
	if recorded.Time.Equal(at) {
		return nil
	}
	return &at
}

// untilRenewalBegins returns the time until the renewal of a certificate may begin. Then the certificate is due on
// every clock within olmcore.ClockTolerance.
func untilRenewalBegins(at, now time.Time) time.Duration {
	return max(time.Second, at.Add(olmcore.ClockTolerance).Sub(now))
}

// renewCertificates renews the certificates of a version that is Pending or Replacing and stays so. It returns
// requests, and updates of Secrets, Deployments and caBundles.
//
// Differs: OLM does nothing for such a version, so its webhooks and APIServices fail once its certificate expires.
func renewCertificates(f *facts, d decision) (r renewal) {
	if d.phase != f.phase || d.rule == ruleNotObserved || !mayRenewCertificates(f) {
		return renewal{}
	}
	unread := slices.Concat(
		read.Missing(f.in.OperatorGroups, "OperatorGroups"), read.Missing(f.in.Deployments, "Deployments"),
		read.Missing(f.in.CustomResourceDefinitions, "CustomResourceDefinitions"), read.Missing(f.in.APIServices, "APIServices"),
		unreadServing(f.in))
	if len(unread) > 0 {
		return renewalWithoutList(f, unread[0])
	}
	u := f.services.Certificates.Upkeep()
	if !u.Keeps {
		return renewal{actions: u.Actions}
	}
	r = renewal{
		actions:      append(u.Actions, f.services.Clients.UpdateBundles()...),
		requests:     u.Requests,
		diagnostics:  certificatesNeeded(f.csv, u.Requests, "the deployments %s need new certificates"),
		requeueAfter: u.Wait,
	}
	if len(u.Requests) > 0 {
		r.requeueAfter = olmcore.Nearest(r.requeueAfter, certificatePace)
		if u.Problem != "" {
			r.diagnostics[0].Message += ": " + u.Problem
		}
	}
	// A renewal that has begun waits for events, and for the deadlines above.
	if u.RenewAt.Add(olmcore.ClockTolerance).After(f.now) {
		r.requeueAfter = olmcore.Nearest(r.requeueAfter, untilRenewalBegins(u.RenewAt, f.now))
	}
	// status.certsRotateAt is updated after the recorded time has passed.
	recorded := f.csv.Status.CertsRotateAt
	if recorded != nil && !recorded.After(f.now) && u.RenewAt.After(f.now) {
		r.renewAt = &u.RenewAt
	}
	return r
}

// renewalWithoutList reports that a list was not read. A Pending CSV needs the list only if it ran before.
func renewalWithoutList(f *facts, list string) renewal {
	if f.phase != v1alpha1.CSVPhaseReplacing && !f.hasRun() {
		return renewal{}
	}
	unread := olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, olmcore.RefOf(f.csv), "",
		"the list of %s was not read, so the certificates of the operator are not renewed", list)
	return renewal{diagnostics: []olmcore.Diagnostic{unread}, requeueAfter: retryLimit}
}
