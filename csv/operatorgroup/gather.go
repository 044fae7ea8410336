// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"context"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of Reconcile. The caller sets Now and Checkpoint. If the OperatorGroup does not exist,
// apierrors.IsNotFound reports true for the error. If the Reader does not read a kind (olmcore.ErrNotRead), the list of
// that kind is incomplete in the Input. Gather returns the error of any other failed read.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName) (Input, error) {
	g, err := olmcore.Require[*operatorsv1.OperatorGroup](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, inputs.Needed(err, "everything about an OperatorGroup")
	}
	reads := read.From(ctx, r)
	var roles []string
	for _, suffix := range model.GroupRoleSuffixes() {
		roles = append(roles, roleName(g, suffix))
	}
	isSibling := func(s *operatorsv1.OperatorGroup) bool { return s.Name != g.Name }
	in := Input{
		OperatorGroup:          g,
		Siblings:               read.Only(read.List[*operatorsv1.OperatorGroup](reads, g.Namespace, nil), isSibling),
		Namespaces:             namespacesOf(reads, g),
		ClusterServiceVersions: read.List[*v1alpha1.ClusterServiceVersion](reads, g.Namespace, nil),
		ClusterRoles:           read.Named[*rbacv1.ClusterRole](reads, "", roles),
		ServiceAccounts:        read.Named[*corev1.ServiceAccount](reads, g.Namespace, []string{g.Spec.ServiceAccountName}),
	}
	if err := reads.Err(); err != nil {
		return Input{}, err
	}
	return in, nil
}

// namespacesOf reads the namespaces that an OperatorGroup selects, those in its status, and those with its label. It
// does not read all namespaces, because a cluster may have as many OperatorGroups as namespaces.
func namespacesOf(reads *read.Reads, g *operatorsv1.OperatorGroup) olmcore.Observed[*corev1.Namespace] {
	selected, marked := olmcore.Found[*corev1.Namespace](), olmcore.Found[*corev1.Namespace]()
	if selectsByLabel(g) {
		if selector, err := metav1.LabelSelectorAsSelector(g.Spec.Selector); err == nil {
			selected = read.List[*corev1.Namespace](reads, "", selector)
		}
	}
	// If the UID is not valid in a label key, no namespace has the label.
	label, err := labels.NewRequirement(model.GroupLabelPrefix+string(g.UID), selection.Exists, nil)
	if err == nil && g.UID != "" {
		marked = read.List[*corev1.Namespace](reads, "", labels.NewSelector().Add(*label))
	}
	named := read.Named[*corev1.Namespace](reads, "", slices.Concat(g.Spec.TargetNamespaces, g.Status.Namespaces))
	return read.Join(named, selected, marked)
}
