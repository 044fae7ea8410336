// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"context"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

const (
	sideEffectsNone   = admissionregistrationv1.SideEffectClassNone
	failurePolicyFail = admissionregistrationv1.Fail
)

var rulesOnVaults = []admissionregistrationv1.RuleWithOperations{{
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
	Rule: admissionregistrationv1.Rule{
		APIGroups:   []string{"bank.example.com"},
		APIVersions: []string{"v1"},
		Resources:   []string{"vaults"},
	},
}}

// reaching is an Issuer that must not be asked: it would write to a cluster.
type reaching struct{ t *testing.T }

func (r reaching) Issue(context.Context, olmcore.Reader, []serving.Request, time.Time) ([]serving.Issued, olmcore.Result, error) {
	r.t.Error("certificates are asked of the caller's issuer")
	return nil, olmcore.Result{}, nil
}
