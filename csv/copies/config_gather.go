// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// GatherConfig reads the Input of Reconcile. The caller sets Now and Checkpoint. Only the Name of key is used. If the
// OLMConfig does not exist, apierrors.IsNotFound reports true for the error. If the Reader does not read a kind
// (olmcore.ErrNotRead), the list of that kind is incomplete in the ConfigInput. GatherConfig returns the error of any
// other failed read.
func GatherConfig(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (ConfigInput, error) {
	c, err := olmcore.Require[*operatorsv1.OLMConfig](ctx, r, "", key.Name)
	if err != nil {
		return ConfigInput{}, inputs.Needed(err, "whether copies of operators are disabled")
	}
	in := ConfigInput{OLMConfig: c, Config: config}
	if c.Name != model.OLMConfigName {
		return in, nil
	}
	reads := read.From(ctx, r)
	in.ClusterServiceVersions = read.List[*v1alpha1.ClusterServiceVersion](reads, metav1.NamespaceAll, nil)
	in.OperatorGroups = read.List[*operatorsv1.OperatorGroup](reads, metav1.NamespaceAll, nil)
	in.Namespaces = read.List[*corev1.Namespace](reads, metav1.NamespaceAll, nil)
	if err := reads.Err(); err != nil {
		return ConfigInput{}, err
	}
	return in, nil
}
