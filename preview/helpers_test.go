// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

const (
	sideEffectsNone   = admissionregistrationv1.SideEffectClassNone
	failurePolicyFail = admissionregistrationv1.Fail
)

var rulesOnVaults = []admissionregistrationv1.RuleWithOperations{{
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{"bank.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"vaults"}},
}}
