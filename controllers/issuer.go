// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	"github.com/olmcore/olm/controllers/selfsigned"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// ReasonCertificateNotIssued: the Issuer failed, and is asked again; what is installed goes on with its old
// certificates. Look at what it says.
const ReasonCertificateNotIssued = "CertificateNotIssued"

// Issuer makes the certificates that operators serve webhooks and APIs with. Different keys may ask at the same time.
type Issuer interface {
	// Issue answers requests, all of one ClusterServiceVersion, as far as it can: with what it returns, or, where it works
	// through objects, with the actions that bring it nearer, and when to ask again. An error is said, and the next call
	// comes soon. What is issued twice does no harm.
	Issue(ctx context.Context, r olmcore.Reader, requests []serving.Request, now time.Time) ([]serving.Issued, olmcore.Result, error)
}

// NoIssuer answers nothing: what needs certificates is not installed. It is for callers that may not hold keys, such as
// those who write manifests.
type NoIssuer struct{}

// Issue implements Issuer.
func (NoIssuer) Issue(context.Context, olmcore.Reader, []serving.Request, time.Time) ([]serving.Issued, olmcore.Result, error) {
	return nil, olmcore.Result{}, nil
}

// issuerPace is how soon an Issuer is asked again that failed.
const issuerPace = 10 * time.Second

// issue answers what a ClusterServiceVersion asks for, and decides again.
func (p *pass) issue(ctx context.Context, r olmcore.Reader, s *Set, in csv.Input, out csv.Outcome) (csv.Outcome, error) {
	var issuer Issuer = selfsigned.Issuer{}
	if s.options.Issuer != nil {
		issuer = s.options.Issuer
	}
	for _, request := range out.Certificates {
		s.ask(CSV, p.key, request)
	}
	issued, result, failure := issuer.Issue(ctx, r, out.Certificates, p.now)
	if failure == nil && len(issued) > 0 {
		in.Issued = issued
		var err error
		if out, err = csv.Reconcile(in); err != nil {
			return csv.Outcome{}, err
		}
	}
	if failure != nil {
		result = olmcore.Result{RequeueAfter: issuerPace, Diagnostics: []olmcore.Diagnostic{olmcore.Diagnose(
			olmcore.Warning, ReasonCertificateNotIssued, olmcore.RefOf(in.ClusterServiceVersion), "", "no certificate was issued: %v", failure)}}
	}
	out.Actions = append(out.Actions, result.Actions...)
	out.Transitions = append(out.Transitions, result.Transitions...)
	out.Diagnostics = append(out.Diagnostics, result.Diagnostics...)
	out.Requeue(result.RequeueAfter)
	return out, nil
}
