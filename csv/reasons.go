// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
)

// Reasons of this package's Causes. They say why an action is returned.
const (
	// ReasonFinalizerMissing means that the cleanup finalizer is added to the CSV. Nothing to do.
	ReasonFinalizerMissing = "FinalizerMissing"
	// ReasonGroupChanged means that the annotations of the CSV are updated to match its OperatorGroup. Nothing to do.
	ReasonGroupChanged = "GroupChanged"
	// ReasonProvidedAPIsChanged means that the annotation olm.providedAPIs of an OperatorGroup is updated to match the
	// APIs of its operators. Nothing to do.
	ReasonProvidedAPIsChanged = model.ReasonProvidedAPIsChanged
	// ReasonStatusChanged means that the status of the CSV is updated to match the observed objects. Nothing to do.
	ReasonStatusChanged = model.ReasonStatusChanged
	// ReasonInstall means that an object of the operator is created or updated as the CSV describes it: a Deployment, a
	// webhook configuration, an APIService, the conversion of a CRD, or an object that one of these needs. An object that
	// cannot be updated is deleted and created again. Nothing to do.
	ReasonInstall = deployment.ReasonInstall
	// ReasonCertificateRotation means that a serving certificate of the operator is stored or rolled out. Nothing to do.
	ReasonCertificateRotation = internalserving.ReasonCertificate
	// ReasonTrust means that the caBundle of a webhook, an APIService or a CRD conversion is updated. The authority of the
	// operator's next certificate is added to the caBundle, or an authority that no Pod needs any more is removed from it.
	// This is also the reason if the namespaceSelector or the rules of an existing webhook are updated. Nothing to do.
	ReasonTrust = internalserving.ReasonTrust
	// ReasonCertificateSettled means that a certificate rotation is complete. The authorities that only the rotation
	// needed are removed from the Secret. Nothing to do.
	ReasonCertificateSettled = internalserving.ReasonSettled
	// ReasonRemovedFromSpec means that a webhook configuration is deleted because the spec no longer describes it. Nothing
	// to do.
	ReasonRemovedFromSpec = internalserving.ReasonRemovedFromSpec
	// ReasonNotOwned means that an APIService is deleted because the spec no longer lists it as owned. Nothing to do.
	ReasonNotOwned = internalserving.ReasonNotOwned
	// ReasonLegacyObject means that an unused object of an owned APIService is deleted. A very old version of OLM
	// created it under another name. Nothing to do.
	ReasonLegacyObject = internalserving.ReasonLegacyObject
	// ReasonRemovedFromStrategy means that a Deployment is deleted because the install strategy no longer contains it.
	// Nothing to do.
	ReasonRemovedFromStrategy = deployment.ReasonRemovedFromStrategy
	// ReasonRepair means that a ServiceAccount, role or binding of the InstallPlan of the CSV is missing and is created
	// again. This happens only if the caller runs Outcome.Repair. Nothing to do.
	ReasonRepair = "Repair"
	// ReasonReplaced means that a CSV is deleted because a newer version is installed. Nothing to do.
	ReasonReplaced = "Replaced"
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved means that a list that the decision needs was not read, so nothing is decided. Give the caller of
	// Reconcile access to the kind in the message.
	ReasonNotObserved = "NotObserved"
	// ReasonGroupNotReady means that the status of the OperatorGroup does not contain its target namespaces yet. Check
	// that the reconciler of OperatorGroups (package operatorgroup) is running.
	ReasonGroupNotReady = "GroupNotReady"
	// ReasonAPIConflict means that OperatorGroups with a common namespace provide the same API. The named
	// ClusterServiceVersion is not installed. Remove one of the two operators, or give the groups separate targets. To
	// keep an API for an operator, set spec.staticProvidedAPIs of its OperatorGroup, and list the API in the annotation
	// olm.providedAPIs.
	ReasonAPIConflict = "APIConflict"
	// ReasonAPIServiceConflict means that an owned APIService exists and belongs to another owner, so the operator is not
	// installed. Delete the APIService, or the operator that owns it. Package sweep deletes an APIService whose operator
	// no longer exists.
	ReasonAPIServiceConflict = "APIServiceConflict"
	// ReasonAPIGroupConflict means that the operator is not installed. An owned APIService does not exist yet, and its API
	// group is reserved or belongs to another operator. Follow the instruction in the message.
	ReasonAPIGroupConflict = "APIGroupConflict"
	// ReasonAPIGroupShared means that an owned APIService is kept although it would not be created today. Its API group is
	// reserved, or also belongs to another operator. Check that the operator may serve the group. A manager reports this
	// reason once after it starts, and again whenever Reconcile returns writes. Assess always reports it.
	ReasonAPIGroupShared = "APIGroupShared"
	// ReasonUnknownInstallMode means that the CSV lists an install mode that the API does not have. The install mode is
	// ignored. Correct spec.installModes.
	ReasonUnknownInstallMode = "UnknownInstallMode"
	// ReasonCRDKindMismatch means that the CSV describes a CRD with a kind that differs from the kind of the CRD. The
	// operator is installed anyway. Correct spec.customresourcedefinitions.
	ReasonCRDKindMismatch = "CRDKindMismatch"
	// ReasonReplacesCycle means that spec.replaces of several CSVs form a cycle. The newest CSV is treated as the latest
	// version. Correct spec.replaces.
	ReasonReplacesCycle = "ReplacesCycle"
	// ReasonCertificatesNeeded means that nothing is installed or renewed until the certificates in Outcome.Certificates
	// are issued. Pass them in Input.Issued. Package controllers does so with Options.Issuer.
	ReasonCertificatesNeeded = "CertificatesNeeded"
	// ReasonWebhookRulesKept means that an existing webhook configuration keeps rules for cluster-scoped objects, although
	// the OperatorGroup does not select all namespaces. A new configuration would not get these rules. So the next version
	// of the operator gets narrower rules or is rejected. A manager reports this reason once after it starts, and again
	// whenever Reconcile returns writes. Assess always reports it. Before you upgrade the operator, give the operator an
	// OperatorGroup that selects all namespaces, or run the command in the message.
	ReasonWebhookRulesKept = internalserving.ReasonRulesKept
	// ReasonWebhookRulesNarrowed means that a webhook is not called for custom resources of a cluster-scoped CRD, although
	// the CSV lists the CRD as owned. The cause is that the OperatorGroup does not select all namespaces, and no
	// InstallPlan recorded that the CRD belongs to this operator alone. A manager reports this reason once after it
	// starts, and again whenever Reconcile returns writes. Assess always reports it. Give the operator an OperatorGroup
	// that selects all namespaces, or run the command in the message.
	ReasonWebhookRulesNarrowed = internalserving.ReasonRulesNarrowed
	// ReasonConversionKept means that a CRD calls the operator for conversions, but no InstallPlan recorded that the CRD
	// was installed with the operator. Only the caBundle of its conversion is updated, even if the next version of the
	// operator needs another conversion. A manager reports this reason once after it starts, and again whenever Reconcile
	// returns writes. Assess always reports it. To allow other changes, let a cluster administrator run the command in the
	// message for each CRD.
	ReasonConversionKept = internalserving.ReasonConversionKept
)
