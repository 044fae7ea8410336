// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of Reconcile. The caller sets Now and Checkpoint. rest is the result of Rest.After of the
// previous call, or nil. While rest is in effect, Gather does not read the kinds that are never watched. If the Reader
// does not read a kind (olmcore.ErrNotRead), the list of that kind is incomplete in the Input. Gather returns the error
// of any other failed read. A kind that the cluster does not serve has no objects.
func Gather(ctx context.Context, r olmcore.Reader, config cleanup.Config, rest *Rest) (Input, error) {
	isOwned, err := labels.NewRequirement(olmcore.LabelOwnerKind, selection.Exists, nil)
	if err != nil {
		return Input{}, err
	}
	reads := read.From(ctx, r)
	in := Input{
		Config:                 config,
		ClusterServiceVersions: read.List[*v1alpha1.ClusterServiceVersion](reads, metav1.NamespaceAll, nil),
		OperatorGroups:         read.List[*operatorsv1.OperatorGroup](reads, metav1.NamespaceAll, nil),
		InstallPlans:           read.List[*v1alpha1.InstallPlan](reads, metav1.NamespaceAll, nil),
		Namespaces:             read.List[*corev1.Namespace](reads, metav1.NamespaceAll, nil),
	}
	kinds := read.ClusterKinds(config.ClusterKinds)
	if rest.holds(&in) {
		kinds = slices.DeleteFunc(kinds, func(gvk schema.GroupVersionKind) bool {
			k, _ := olmcore.KindOf(gvk.GroupKind())
			return k.Watch == olmcore.WatchNever
		})
	}
	in.Objects, in.Unread = read.Owned(reads, kinds, labels.NewSelector().Add(*isOwned))
	if err := reads.Err(); err != nil {
		return Input{}, err
	}
	return in, nil
}
