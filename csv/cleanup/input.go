// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"cmp"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Input contains all data that Reconcile uses. Reconcile does not change it. Lists may contain more objects than their
// comments name.
type Input struct {
	// Now is the time of this call. Required.
	Now time.Time
	// ClusterServiceVersion is the object that is being deleted, with name, namespace and UID. Required.
	ClusterServiceVersion *v1alpha1.ClusterServiceVersion
	Config                Config
	// LastRun contains the results of the caller's last olmcore.Run. Optional. If LastRun is nil, a write that the API
	// server rejected is retried without backoff and without a time limit.
	LastRun olmcore.LastResults

	// OperatorGroups contains the OperatorGroups of the namespace.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// Neighbours contains the other original ClusterServiceVersions of the namespace in the same upgrade chain.
	Neighbours olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Subscriptions contains the Subscriptions of the namespace that have installed this ClusterServiceVersion or are
	// about to install it.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	// CustomResourceDefinitions contains the CRDs that the ClusterServiceVersion owns.
	CustomResourceDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	// Deployments contains the Deployments of the namespace with the owner labels of the ClusterServiceVersion.
	Deployments olmcore.Observed[*appsv1.Deployment]
	Deletion
}

// Deletion contains the lists that only a cleanup needs, so package csv does not read them for every
// ClusterServiceVersion. Gather fills it.
type Deletion struct {
	// Peers contains the other original ClusterServiceVersions, in all namespaces, that own or require a CRD of this
	// ClusterServiceVersion.
	Peers olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Namespaces contains the namespace of the ClusterServiceVersion, and the namespaces in which operands may be deleted.
	// If operands may be deleted in the whole cluster, Namespaces contains all namespaces.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// ClusterObjects contains the cluster-scoped objects, and the RoleBindings of kube-system, that have the three owner
	// labels of the ClusterServiceVersion. It also contains objects of other owners that record the ClusterServiceVersion
	// as a co-owner. If the list is incomplete, Items contains the objects of the kinds that were read.
	ClusterObjects olmcore.Observed[olmcore.Object]
	// Unread contains the kinds for which ClusterObjects is incomplete. A Diagnostic names them.
	Unread []schema.GroupKind
	// Sharers contains the other original ClusterServiceVersions that need an object of ClusterObjects. Either the object
	// records them as owner or co-owner, or an InstallPlan installs the object for them.
	Sharers olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// InstallPlans contains the InstallPlans, in all namespaces, that have applied a step for an object of ClusterObjects.
	// If such an object has another owner, the list also contains the unfinished InstallPlans that install that owner.
	InstallPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// SharerGroups contains the OperatorGroups of the namespaces of InstallPlans.
	SharerGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// Copies contains the copies of the ClusterServiceVersion in other namespaces. A copy has the name of the
	// ClusterServiceVersion, and its label olm.copiedFrom contains the namespace of the ClusterServiceVersion.
	Copies olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// WellKnown contains objects outside the namespace that are found by name. They are:
	//  - for each Deployment <d> of the strategy, the ClusterRoleBinding <d>-service-system:auth-delegator
	//  - for each Deployment <d> of the strategy, the RoleBinding <d>-service-auth-reader in kube-system
	//  - the APIServices that the ClusterServiceVersion owns
	//
	// If <d> contains dots, the list also contains the bindings whose names have dashes instead of the dots. It also
	// contains the bindings whose names end with a hash of the namespace.
	WellKnown olmcore.Observed[olmcore.Object]
	// Operands contains the custom resources of each kind that the previous Outcome.Operands requested. If a kind has no
	// entry, its objects were not read.
	Operands map[schema.GroupKind]olmcore.Observed[olmcore.Object]
	// Refused contains the kinds of operands that the caller may not list. The cleanup reports them and waits.
	Refused []schema.GroupKind
}

// Config contains the options of a cleanup. The zero value is right for most clusters. The field spec.cleanup.enabled
// of a ClusterServiceVersion decides whether its custom resources are deleted.
type Config struct {
	// If Disabled is true, every cleanup deletes nothing and removes the finalizer at once. Set Disabled before the
	// controller is uninstalled permanently.
	Disabled bool `json:"disabled,omitempty"`
	// OperandTimeout is the maximum time that a cleanup waits for the deletion of custom resources. The time starts with
	// the deletion of the ClusterServiceVersion. 0 means no limit.
	OperandTimeout time.Duration `json:"operandTimeout,omitempty"`
	// ClusterKinds contains additional kinds of cluster-scoped objects that the cleanup finds by owner labels. RBAC
	// objects, webhook configurations, APIServices, PriorityClasses and the kinds of the OpenShift console are always
	// included.
	ClusterKinds []schema.GroupVersionKind `json:"clusterKinds,omitempty"`
	// SweepDelete makes package sweep delete the objects that it finds. Otherwise package sweep only reports them.
	SweepDelete bool `json:"sweepDelete,omitempty"`
}

// Cover adds each field to a Coverage.
func (c Config) Cover(coverage *checkpoint.Coverage) {
	checkpoint.CoverValue(coverage, c.Disabled)
	checkpoint.CoverValue(coverage, c.OperandTimeout)
	checkpoint.CoverValues(coverage, c.ClusterKinds)
	checkpoint.CoverValue(coverage, c.SweepDelete)
}

// Validate returns an *olmcore.InputError if a field of the Config is invalid. Otherwise it returns nil. The Field of
// the error begins with "Config.Cleanup".
func (c Config) Validate() error {
	if c.OperandTimeout < 0 {
		return &olmcore.InputError{Field: "Config.Cleanup.OperandTimeout", Problem: "is negative"}
	}
	for i, kind := range c.ClusterKinds {
		if kind.Version == "" || kind.Kind == "" {
			return &olmcore.InputError{Field: fmt.Sprintf("Config.Cleanup.ClusterKinds[%d]", i), Problem: "has no version or no kind"}
		}
	}
	return nil
}

// Outcome is the result of Reconcile: the writes, the kinds that must be listed next, and the progress.
type Outcome struct {
	olmcore.Result
	// Operands contains the kinds of custom resources that must be listed before the cleanup can continue. Set the listed
	// objects in Deletion.Operands of the next Input. Gather does so itself.
	Operands []schema.GroupVersionKind
	// Mode is the extent of the cleanup, Stage is its current stage, and Pending is the number of objects that this stage
	// waits for. All three are zero if there is nothing to clean up.
	Mode    Mode
	Stage   Stage
	Pending int
}

// lists names every list of the Input once, except ClusterObjects, WellKnown and Operands, whose kinds differ. To add a
// list, add a field and a row.
func (in *Input) lists(v *inputs.ListVisit) {
	inputs.VisitList(v, "OperatorGroups", &in.OperatorGroups, inputs.Optional)
	inputs.VisitList(v, "Neighbours", &in.Neighbours, inputs.Optional)
	inputs.VisitList(v, "Subscriptions", &in.Subscriptions, inputs.Optional)
	inputs.VisitList(v, "CustomResourceDefinitions", &in.CustomResourceDefinitions, inputs.Optional)
	inputs.VisitList(v, "Deployments", &in.Deployments, inputs.Optional)
	inputs.VisitList(v, "Deletion.Peers", &in.Peers, inputs.Optional)
	inputs.VisitList(v, "Deletion.Sharers", &in.Sharers, inputs.Optional)
	inputs.VisitList(v, "Deletion.InstallPlans", &in.InstallPlans, inputs.Optional)
	inputs.VisitList(v, "Deletion.SharerGroups", &in.SharerGroups, inputs.Optional)
	inputs.VisitList(v, "Deletion.Copies", &in.Copies, inputs.Optional)
	inputs.VisitList(v, "Deletion.Namespaces", &in.Namespaces, inputs.Optional)
}

func (in *Input) validate() error {
	lists := inputs.ValidateLists()
	in.lists(&lists)
	err := cmp.Or(
		model.ValidateCSV(in.ClusterServiceVersion, in.Now),
		in.Config.Validate(),
		lists.Err(),
		read.ValidateMixed("Deletion.ClusterObjects", in.ClusterObjects),
		read.ValidateMixed("Deletion.WellKnown", in.WellKnown),
	)
	for _, answer := range in.Operands {
		err = cmp.Or(err, read.ValidateMixed("Deletion.Operands", answer))
	}
	return err
}
