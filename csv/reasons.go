// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"github.com/olmcore/olm/csv/internal/apiservice"
	"github.com/olmcore/olm/csv/internal/backend"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/webhook"
)

// Reasons of this package's Causes: why an action is asked for.
const (
	// ReasonFinalizerMissing: the cleanup finalizer is put on. Nothing to do.
	ReasonFinalizerMissing = "FinalizerMissing"
	// ReasonGroupChanged: the annotations follow the OperatorGroup. Nothing to do.
	ReasonGroupChanged = "GroupChanged"
	// ReasonProvidedAPIsChanged: the annotation of an OperatorGroup follows what its operators provide. Nothing to do.
	ReasonProvidedAPIsChanged = group.ReasonProvidedAPIsChanged
	// ReasonStatusChanged: the status follows what was observed. Nothing to do.
	ReasonStatusChanged = owned.ReasonStatusChanged
	// ReasonInstall: a Deployment of the install strategy is created or brought up to date. Nothing to do.
	ReasonInstall = deployment.ReasonInstall
	// ReasonCertificateRotation: a certificate that an operator serves with is stored, or follows another. Nothing to
	// do.
	ReasonCertificateRotation = backend.ReasonCertificate
	// ReasonTrust: who calls the operator comes to trust a certificate that is to follow, or no longer trusts one that
	// no Pod serves with. Nothing to do.
	ReasonTrust = webhook.ReasonTrust
	// ReasonCertificateSettled: what was needed while one certificate followed another goes. Nothing to do.
	ReasonCertificateSettled = backend.ReasonSettled
	// ReasonRemovedFromSpec: a webhook configuration goes that the spec describes no more. Nothing to do.
	ReasonRemovedFromSpec = webhook.ReasonRemovedFromSpec
	// ReasonNotOwned: an APIService goes that the spec lists no more. Nothing to do.
	ReasonNotOwned = apiservice.ReasonNotOwned
	// ReasonLegacyObject: what very old versions of OLM made under another name goes. Nothing to do.
	ReasonLegacyObject = apiservice.ReasonLegacyObject
	// ReasonRemovedFromStrategy: a Deployment goes that the strategy has no more. Nothing to do.
	ReasonRemovedFromStrategy = deployment.ReasonRemovedFromStrategy
	// ReasonRepair: a ServiceAccount, role or binding is created again that an InstallPlan made and that was deleted,
	// when the caller runs Outcome.Repair.
	ReasonRepair = "Repair"
	// ReasonReplaced: a version goes because a newer one is installed. Nothing to do.
	ReasonReplaced = "Replaced"
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved: the input lacks a list that the decision needs, so nothing is decided. Give the caller of
	// Reconcile access to the kind it names.
	ReasonNotObserved = "NotObserved"
	// ReasonGroupNotReady: the target namespaces of the OperatorGroup are not computed yet. Run package operatorgroup
	// for it.
	ReasonGroupNotReady = "GroupNotReady"
	// ReasonAPIConflict means that OperatorGroups with a common namespace provide the same API. The named
	// ClusterServiceVersion is not installed. Remove one of the two operators, or give the groups separate targets. To
	// keep an API for an operator, set spec.staticProvidedAPIs of its OperatorGroup, and list the API in the annotation
	// olm.providedAPIs.
	ReasonAPIConflict = "APIConflict"
	// ReasonAPIServiceConflict: an owned APIService exists and is another's, so the operator is not installed. Remove
	// it or the operator that it belongs to; one that was left behind goes with package sweep.
	ReasonAPIServiceConflict = "APIServiceConflict"
	// ReasonAPIGroupConflict: an owned APIService does not exist yet, and its API group belongs to another operator or
	// is reserved, so the operator is not installed. Run the command in the message to allow it.
	ReasonAPIGroupConflict = "APIGroupConflict"
	// ReasonAPIGroupShared: an owned APIService exists that would not be created today, because its API group belongs
	// to another operator too. It stays. Check that both operators may serve the group. A manager reports it once after
	// a start, and again together with writes. Assess always reports it.
	ReasonAPIGroupShared = "APIGroupShared"
	// ReasonUnknownInstallMode: the CSV lists an install mode that the API does not have, which supports nothing.
	// Correct spec.installModes.
	ReasonUnknownInstallMode = "UnknownInstallMode"
	// ReasonCRDKindMismatch: the CSV describes a CRD with another kind than it has. It is installed all the same.
	// Correct spec.customresourcedefinitions.
	ReasonCRDKindMismatch = "CRDKindMismatch"
	// ReasonReplacesCycle: CSVs replace each other in a cycle; the newest is taken for the head. Correct spec.replaces.
	ReasonReplacesCycle = "ReplacesCycle"
	// ReasonCertificatesNeeded: Outcome.Certificates must be issued before anything is installed or renewed. Answer
	// them in Input.Issued; package controllers does so with Options.Issuer.
	ReasonCertificatesNeeded = "CertificatesNeeded"
	// ReasonWebhookRulesKept means that a webhook configuration keeps rules that a new one would not get, because the
	// OperatorGroup does not select all namespaces. The next version of the operator gets narrower rules or is refused.
	// A manager reports it once after a start, and again together with writes. Assess always reports it. Before you
	// upgrade the operator, give it an OperatorGroup that selects all namespaces, or run the command of the message.
	ReasonWebhookRulesKept = webhook.ReasonRulesKept
	// ReasonWebhookRulesNarrowed means that a webhook is not called for custom resources of a cluster-scoped CRD,
	// although the CSV lists the CRD as owned. The OperatorGroup does not select all namespaces, and no InstallPlan
	// recorded that the CRD came with this operator alone. A manager reports it once after a start, and again together
	// with writes. Assess always reports it. Give the operator an OperatorGroup that selects all namespaces, or run the
	// command of the message.
	ReasonWebhookRulesNarrowed = webhook.ReasonRulesNarrowed
	// ReasonConversionKept means that a CRD calls the operator for conversions although no InstallPlan recorded the
	// CRD. Its conversion is not changed, also if the next version of the operator needs that. A manager reports it
	// once after a start, and again together with writes. Assess always reports it. A cluster administrator runs the
	// command of the message for each CRD to allow it.
	ReasonConversionKept = webhook.ReasonConversionKept
)
