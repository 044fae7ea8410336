// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// install writes the objects of the operator. Once all of them are observed, the CSV is Installing.
func install(f *facts) (decision, bool) {
	todo := installation(f)
	switch {
	case todo.Incomputable:
		return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonNeedsReinstall, deployment.Bad).named("InstallFailed"), true
	case todo.Failure != "":
		return failInstallation(f, todo), true
	case !todo.Done():
		return continueInstallation(f, todo), true
	}
	return finishInstallation(f, todo), true
}

// installAgain repeats a failed installation while the CSV is Failed. A write that the API server called invalid is not
// repeated until its content changes. Other failures are retried with backoff. If the operator becomes healthy in the
// meantime, the CSV is Succeeded. It stays Failed if its certificates or APIServices need a repair, because that repair
// would begin again at once.
func installAgain(f *facts) (decision, bool) {
	if f.csv.Status.Reason != v1alpha1.CSVReasonComponentFailed && !isRefused(f.csv) {
		return decision{}, false
	}
	d, state := health(f, v1alpha1.CSVPhaseFailed, v1alpha1.CSVReasonComponentFailed)
	if state == deployment.Healthy && d.phase == v1alpha1.CSVPhaseSucceeded && !needsRepair(f) {
		return d.write(f.services.Clients.Trust()...).and(nextRenewal(f, d.phase)), true
	}
	todo := installation(f)
	switch {
	case todo.Incomputable:
		return f.stay().requeue(f.retryIn(f.csv.Status.Phase)), true
	case todo.Failure != "":
		d = failInstallation(f, todo).write(deployment.Judge(f.services.Clients.Trust(), triesOf(f)).Actions...)
		if len(todo.Attempts) == 0 { // an object of another owner is in the way, and may disappear without an event
			d = d.requeue(f.retryIn(d.phase))
		}
		return d, true
	case !todo.Done():
		return continueInstallation(f, todo), true
	}
	return finishInstallation(f, todo), true
}

// failInstallation reports a failed installation. If the status contains a failure that was recorded later, its reason
// and message stay.
func failInstallation(f *facts, todo deployment.Installation) decision {
	d := fail(v1alpha1.CSVReasonComponentFailed, "install strategy failed: "+todo.Failure).named("InstallFailed")
	if todo.NoRetry {
		d = fail(v1alpha1.CSVReasonComponentFailedNoRetry, "install strategy failed: "+todo.Failure).named("InstallRefused")
	}
	if isReportedLater(&f.csv.Status, todo.FailedAt, f.now) {
		d.reason, d.message = f.csv.Status.Reason, f.csv.Status.Message
	}
	return d.requeue(todo.RequeueAfter).remember(todo)
}

// isReportedLater reports whether a status contains a failed installation that ended at the given time or later. Two
// managers remember different failures. Without this rule they would overwrite each other's message again and again. A
// time that is more than olmcore.ClockTolerance in the future is ignored.
func isReportedLater(s *v1alpha1.ClusterServiceVersionStatus, failedAt, now time.Time) bool {
	isInstallation := s.Reason == v1alpha1.CSVReasonComponentFailed || s.Reason == v1alpha1.CSVReasonComponentFailedNoRetry
	return s.Phase == v1alpha1.CSVPhaseFailed && isInstallation && !failedAt.IsZero() && s.LastUpdateTime != nil &&
		!olmcore.Timestamp(failedAt).After(s.LastUpdateTime.Time) && s.LastUpdateTime.Sub(now) <= olmcore.ClockTolerance
}

// continueInstallation returns the remaining writes of an installation, or waits.
func continueInstallation(f *facts, todo deployment.Installation) decision {
	d := f.stay().requeue(todo.RequeueAfter).write(todo.Actions...).diagnose(certificatesMissing(f)...).remember(todo)
	d.requests = f.services.Certificates.Requests
	return d
}

// finishInstallation makes a CSV Installing.
func finishInstallation(f *facts, todo deployment.Installation) decision {
	d := move(v1alpha1.CSVPhaseInstalling, v1alpha1.CSVReasonInstallSuccessful, "waiting for install components to report healthy").
		named("Installed").
		write(deployment.Removals(f.csv, f.in.Deployments.Items)...).
		diagnose(kindMismatches(f.csv, f.in.CustomResourceDefinitions.Items)...).
		remember(todo)
	d.renewAt = newRenewalTime(f)
	return d
}

// remember returns d with the attempts of an installation, which the next call needs.
func (d decision) remember(todo deployment.Installation) decision {
	d.attempts = todo.Attempts
	return d
}

// certificatePace is how soon a certificate that was not issued is requested again.
const certificatePace = 10 * time.Second

// installation returns what remains to be done until the whole operator is installed: first its certificates and the
// objects that must trust them, then the Deployments, then the webhooks and APIServices.
func installation(f *facts) deployment.Installation {
	source := f.deployments()
	tries := triesOf(f)
	if !isCalled(f.csv) {
		return source.Install(tries)
	}
	// 1. Certificates.
	if todo := certificateInstallation(f, tries); !todo.Done() {
		return todo
	}
	// 2. Deployments.
	if todo := source.Install(tries); !todo.Done() {
		return todo
	}
	// 3. Webhooks and APIServices.
	clients, problem := f.services.Clients.Install()
	if problem != "" {
		return deployment.Installation{Failure: problem}
	}
	todo := deployment.Judge(clients, tries)
	if todo.Done() && f.services.Certificates.Renew != "" {
		// The certificate is replaced once all callers are observed.
		todo.RequeueAfter = olmcore.Nearest(certificatePace, f.services.Certificates.Wait)
	}
	return todo
}

// certificateInstallation returns what remains to be done until every Deployment that serves webhooks or APIs has a
// certificate.
func certificateInstallation(f *facts, tries deployment.Tries) deployment.Installation {
	certificates := f.services.Certificates
	switch {
	case certificates.Problem != "":
		return deployment.Installation{Failure: certificates.Problem}
	case len(certificates.Requests) > 0:
		if held := tries.Held(); held.Failure != "" {
			return held
		}
		return deployment.Installation{RequeueAfter: certificatePace}
	}
	todo := deployment.Judge(slices.Concat(certificates.Install, f.services.Clients.Trust()), tries)
	isMissing := func(name string) bool { return !certificates.Ready(name) }
	if todo.Done() && slices.ContainsFunc(internalserving.DeploymentNames(f.csv), isMissing) {
		// An object that must be deleted first is being deleted.
		return deployment.Installation{RequeueAfter: olmcore.Nearest(certificatePace, certificates.Wait)}
	}
	return todo
}

// certificatesMissing returns a Diagnostic if nothing is installed until certificates are issued.
func certificatesMissing(f *facts) []olmcore.Diagnostic {
	const format = "nothing is installed until certificates are issued for the deployments %s"
	return certificatesNeeded(f.csv, f.services.Certificates.Requests, format)
}

// Judged is the memory of an installation. It contains the writes of the installation with their results, and the
// grants that its permissions depended on. Pass Outcome.Judged in the next Input and do not change it. A CSV that
// failed because permissions are missing is installed again as soon as the CSV, the account or its grants differ.
type Judged struct {
	// Generation is the metadata.generation of the CSV.
	Generation int64
	// Account is the name of the ServiceAccount in the spec of the OperatorGroup. It is empty if the spec names none.
	Account string
	// Grants contains Input.Grants in sorted order.
	Grants []olmcore.Ref
	// attempts contains the writes of the installation and their results.
	attempts deployment.Attempts
}

// Equal reports whether j and o contain the same data. Nil equals only nil.
func (j *Judged) Equal(o *Judged) bool {
	if j == nil || o == nil {
		return j == o
	}
	return j.sameRights(o) && j.attempts.Equal(o.attempts)
}

// sameRights reports whether no change may have granted the missing permissions.
func (j *Judged) sameRights(o *Judged) bool {
	return j.Generation == o.Generation && j.Account == o.Account && slices.Equal(j.Grants, o.Grants)
}

// judgedBy returns a memory with the grants of an Input and without attempts. It is nil if the grants or the
// OperatorGroups were not read.
func judgedBy(in *Input) *Judged {
	if !in.Grants.Complete || !in.OperatorGroups.Complete {
		return nil
	}
	j := &Judged{Generation: in.ClusterServiceVersion.Generation, Grants: slices.Clone(in.Grants.Items)}
	slices.SortFunc(j.Grants, func(a, b olmcore.Ref) int {
		return cmp.Or(a.Compare(b), strings.Compare(a.ResourceVersion, b.ResourceVersion))
	})
	j.Grants = slices.Compact(j.Grants)
	if g, _ := model.OnlyGroup(in.OperatorGroups.Items, in.ClusterServiceVersion.Namespace); g != nil {
		j.Account = g.Spec.ServiceAccountName
	}
	return j
}

// rememberInstallation returns the memory for the next call. A failed write is remembered with the grants of the call
// that requested it. So a grant that changed in the meantime leads to a new installation.
func rememberInstallation(f *facts, d decision) *Judged {
	remembered := f.in.Judged
	isFailed := d.phase == v1alpha1.CSVPhaseFailed
	switch {
	case d.reason == v1alpha1.CSVReasonComponentFailedNoRetry, isFailed && isRefused(f.csv):
		if remembered != nil {
			return remembered.withAttempts(d.attempts)
		}
		if d.reason == v1alpha1.CSVReasonComponentFailed && len(d.attempts) == 0 {
			return nil
		}
	case isFailed && d.reason == v1alpha1.CSVReasonComponentFailed && len(d.attempts) > 0:
	case f.phase == v1alpha1.CSVPhaseInstallReady && d.phase == v1alpha1.CSVPhaseInstallReady:
	default:
		return nil
	}
	next := judgedBy(f.in)
	if len(d.attempts) > 0 {
		next = cmp.Or(next, &Judged{Generation: f.csv.Generation})
		next.attempts = d.attempts
	}
	if next.Equal(remembered) {
		return remembered // the same memory, so that a Checkpoint holds
	}
	return next
}

// withAttempts returns the memory with the attempts of a later call.
func (j *Judged) withAttempts(attempts deployment.Attempts) *Judged {
	if len(attempts) == 0 || attempts.Equal(j.attempts) {
		return j
	}
	next := *j
	next.attempts = attempts
	return &next
}

// triesOf returns the earlier attempts to install this generation of the CSV.
func triesOf(f *facts) deployment.Tries {
	t := deployment.Tries{Now: f.now, LastRun: f.in.LastRun, Again: f.phase == v1alpha1.CSVPhaseFailed}
	at := f.csv.Status.LastTransitionTime
	if at != nil && !t.Again {
		t.Since = at.Time
	}
	switch {
	case f.in.Judged == nil:
	case f.in.Judged.Generation == f.csv.Generation:
		t.Attempts = f.in.Judged.attempts
	default:
		t.LastRun = nil
	}
	return t
}

// waitForPermissions keeps a CSV Failed that lacks permissions, until a change may have granted them. With backoff it
// lets installAgain repeat the installation, because not every grant can be observed.
func waitForPermissions(f *facts) (decision, bool) {
	if !isRefused(f.csv) {
		return decision{}, false
	}
	now := judgedBy(f.in)
	if f.in.Judged != nil && now != nil && !now.sameRights(f.in.Judged) {
		return move(v1alpha1.CSVPhasePending, v1alpha1.CSVReasonDetectedClusterChange, "Cluster resources changed state"), true
	}
	tries := triesOf(f)
	left := tries.Held().RequeueAfter
	at := f.csv.Status.LastTransitionTime
	if len(tries.Attempts) == 0 && at != nil {
		left = deployment.RefusedRetry.After(1) - f.sinceTransition()
	}
	return f.stay().requeue(left), left > 0
}

// isRefused reports whether a CSV failed because permissions are missing.
func isRefused(c *version) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseFailed && c.Status.Reason == v1alpha1.CSVReasonComponentFailedNoRetry
}

// certificatesNeeded returns a Diagnostic for requests of certificates, or nothing if there are no requests. format
// contains one %s for the names of the Deployments.
func certificatesNeeded(c *version, requests []serving.Request, format string) []olmcore.Diagnostic {
	if len(requests) == 0 {
		return nil
	}
	var names []string
	for _, r := range requests {
		names = append(names, r.Deployment)
	}
	needed := olmcore.Diagnose(olmcore.Info, ReasonCertificatesNeeded, olmcore.RefOf(c), "", format, strings.Join(names, ", "))
	return []olmcore.Diagnostic{needed}
}

// kindMismatches returns a Diagnostic for each description of a CRD whose kind differs from that of the CRD. Such a
// description is used anyway, as in OLM.
func kindMismatches(c *version, definitions []*apiextensionsv1.CustomResourceDefinition) []olmcore.Diagnostic {
	var mismatches []olmcore.Diagnostic
	found := model.IndexByName(definitions, "")
	check := func(list []v1alpha1.CRDDescription, path string) {
		for i, d := range list {
			crd := found[d.Name]
			if crd != nil && crd.Spec.Names.Kind != d.Kind {
				mismatches = append(mismatches, olmcore.Diagnose(olmcore.Warning, ReasonCRDKindMismatch, olmcore.RefOf(c),
					fmt.Sprintf("spec.customresourcedefinitions.%s[%d].kind", path, i),
					"the kind of CRD %s is %s, not %s", d.Name, crd.Spec.Names.Kind, d.Kind))
			}
		}
	}
	check(c.Spec.CustomResourceDefinitions.Owned, "owned")
	check(c.Spec.CustomResourceDefinitions.Required, "required")
	return mismatches
}
