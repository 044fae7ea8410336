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

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// Input is everything Reconcile looks at. Reconcile writes to none of it. A list may hold more than it has to.
type Input struct {
	// Now is the instant of this call. Required.
	Now time.Time
	// ClusterServiceVersion is the object that is being deleted, with name, namespace and UID. Required.
	ClusterServiceVersion *v1alpha1.ClusterServiceVersion
	Config                Config
	// LastRun is the adapter's memory of its last Run; optional. Without it a write that the API server refuses is
	// repeated instead of given up.
	LastRun olmcore.LastResults

	// OperatorGroups are those of the namespace.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// Neighbours are the other ClusterServiceVersions of the namespace, copies left out, that spec.replaces connects
	// with this one.
	Neighbours olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Subscriptions are those of the namespace that have this ClusterServiceVersion installed or are about to.
	Subscriptions olmcore.Observed[*v1alpha1.Subscription]
	// CustomResourceDefinitions are those that the ClusterServiceVersion owns.
	CustomResourceDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	// Deployments are those of the namespace that carry the owner labels of the ClusterServiceVersion.
	Deployments olmcore.Observed[*appsv1.Deployment]
	Deletion
}

// Deletion is what a cleanup looks at besides what package csv reads for every ClusterServiceVersion. Gather fills it.
type Deletion struct {
	// Peers are the other ClusterServiceVersions of all namespaces, copies left out, that own or require a CRD which
	// this one owns.
	Peers olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// Namespaces are the own one and those in which operands may be deleted; all when that is everywhere.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// ClusterObjects are the cluster-scoped objects, and the RoleBindings of kube-system, that carry the three owner
	// labels, and those of another owner that record the ClusterServiceVersion as a co-owner. When not complete, Items
	// are those of the kinds that were read.
	ClusterObjects olmcore.Observed[olmcore.Object]
	// Unread are the kinds for which ClusterObjects is not complete, which what is said names; may be empty.
	Unread []schema.GroupKind
	// Sharers are the other ClusterServiceVersions, copies left out, that ClusterObjects record as owners or co-owners,
	// and for which InstallPlans contain one of them.
	Sharers olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// InstallPlans are those of all namespaces with a step for one of ClusterObjects, and those that install its owner.
	InstallPlans olmcore.Observed[*v1alpha1.InstallPlan]
	// SharerGroups are the OperatorGroups of the namespaces of InstallPlans.
	SharerGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// Copies are the copies of the ClusterServiceVersion in other namespaces: those with its name whose label
	// olm.copiedFrom names its namespace.
	Copies olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// WellKnown are objects outside the namespace that are found by name: for each Deployment d of the strategy the
	// ClusterRoleBinding <d>-service-system:auth-delegator and the RoleBinding <d>-service-auth-reader in kube-system,
	// which serving certificates need, and the APIServices that the ClusterServiceVersion owns.
	WellKnown olmcore.Observed[olmcore.Object]
	// Operands answers Outcome.Operands: the instances of each kind. A kind that is absent was not read.
	Operands map[schema.GroupKind]olmcore.Observed[olmcore.Object]
	// Refused are the kinds of operands that the caller may not list: the cleanup waits, and says so.
	Refused []schema.GroupKind
}

// Config tunes what happens to what a ClusterServiceVersion leaves behind. The zero value is right for most clusters.
// Whether custom resources are deleted at all says spec.cleanup.enabled of the ClusterServiceVersion.
type Config struct {
	// Disabled releases every ClusterServiceVersion at once and deletes nothing: for a controller that is being removed
	// for good.
	Disabled bool `json:"disabled,omitempty"`
	// OperandTimeout releases custom resources that are left after this time from the deletion of the
	// ClusterServiceVersion on. 0: none; they hold it until they are gone.
	OperandTimeout time.Duration `json:"operandTimeout,omitempty"`
	// ClusterKinds are kinds of cluster-scoped objects to look for by owner labels, besides those of RBAC, of admission
	// webhooks, APIService, PriorityClass and the kinds of the OpenShift console.
	ClusterKinds []schema.GroupVersionKind `json:"clusterKinds,omitempty"`
	// SweepDelete lets package sweep delete what it finds instead of reporting it alone.
	SweepDelete bool `json:"sweepDelete,omitempty"`
}

// Cover hands each field to a Coverage.
func (c Config) Cover(coverage *olmcore.Coverage) {
	olmcore.CoverValue(coverage, c.Disabled)
	olmcore.CoverValue(coverage, c.OperandTimeout)
	olmcore.CoverValues(coverage, c.ClusterKinds)
	olmcore.CoverValue(coverage, c.SweepDelete)
}

// Validate returns the *olmcore.InputError of a Config that breaks its contract, nil for none. Its field begins with
// "Config.Cleanup".
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

// Outcome is a Result, what Reconcile asks its caller for, and how far it got.
type Outcome struct {
	olmcore.Result
	// Operands are kinds whose instances must be known before the cleanup can go on: list them and answer in
	// Deletion.Operands of the next Input. Gather does so by itself.
	Operands []schema.GroupVersionKind
	// Mode, Stage and Pending say how much is to be done, which stage holds the ClusterServiceVersion, and how many
	// objects of it do. Empty when there is nothing to clean up after.
	Mode    Mode
	Stage   Stage
	Pending int
}

// lists names every list of the Input once, except ClusterObjects, WellKnown and Operands, whose kinds differ. To add a
// list, add a field and a row.
func (in *Input) lists(v *olmcore.ListVisit) {
	olmcore.VisitList(v, "OperatorGroups", &in.OperatorGroups, olmcore.Optional)
	olmcore.VisitList(v, "Neighbours", &in.Neighbours, olmcore.Optional)
	olmcore.VisitList(v, "Subscriptions", &in.Subscriptions, olmcore.Optional)
	olmcore.VisitList(v, "CustomResourceDefinitions", &in.CustomResourceDefinitions, olmcore.Optional)
	olmcore.VisitList(v, "Deployments", &in.Deployments, olmcore.Optional)
	olmcore.VisitList(v, "Deletion.Peers", &in.Peers, olmcore.Optional)
	olmcore.VisitList(v, "Deletion.Sharers", &in.Sharers, olmcore.Optional)
	olmcore.VisitList(v, "Deletion.InstallPlans", &in.InstallPlans, olmcore.Optional)
	olmcore.VisitList(v, "Deletion.SharerGroups", &in.SharerGroups, olmcore.Optional)
	olmcore.VisitList(v, "Deletion.Copies", &in.Copies, olmcore.Optional)
	olmcore.VisitList(v, "Deletion.Namespaces", &in.Namespaces, olmcore.Optional)
}

func (in *Input) validate() error {
	lists := olmcore.ValidateLists()
	in.lists(&lists)
	err := cmp.Or(
		owned.Validate(in.ClusterServiceVersion, in.Now),
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
