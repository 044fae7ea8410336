// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of Reconcile. The caller sets Now, LastRun and Checkpoint. It is not an error if the original
// does not exist: then its copies are deleted. If the Reader does not read ClusterServiceVersions, errors.Is(err,
// olmcore.ErrNotRead) is true. Any other list that the Reader does not read is incomplete in the Input. Any other
// failed read is an error.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (Input, error) {
	source, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, r, key.Namespace, key.Name)
	if err != nil {
		return Input{}, olmcore.Needed(err, "everything about copies of a ClusterServiceVersion")
	}
	reads := read.From(ctx, r)
	in := Input{Key: key, Config: config, Sources: olmcore.Found[*v1alpha1.ClusterServiceVersion]()}
	var targets model.Targets
	if source != nil {
		in.Sources = olmcore.Found(source)
		targets, _ = model.AnnotatedTargets(source)
	}
	in.OperatorGroups = read.List[*operatorsv1.OperatorGroup](reads, key.Namespace, nil)
	in.OLMConfigs = read.Named[*operatorsv1.OLMConfig](reads, "", []string{model.OLMConfigName})
	in.Events = olmcore.Found[*corev1.Event]()
	if source != nil && targets.All() {
		if config, _ := model.Find(in.OLMConfigs.Items, "", model.OLMConfigName); saysWhether(config) {
			in.Events = read.Named[*corev1.Event](reads, key.Namespace, []string{EventName(source)})
		}
	}
	in.readCopies(reads, targets)
	if err := reads.Err(); err != nil {
		return Input{}, err
	}
	return in, nil
}

// readCopies reads the copies, and the namespaces that have one or should have one. If the operator watches all
// namespaces, the copies are read by name, because their label also selects the copies of all other operators of the
// namespace.
func (in *Input) readCopies(reads *read.Reads, targets model.Targets) {
	if targets.All() {
		in.Namespaces = read.List[*corev1.Namespace](reads, metav1.NamespaceAll, nil)
		if in.Namespaces.Complete {
			in.Copies = namedIn(reads, in.Key, in.Namespaces.Items)
			return
		}
	}
	from := labels.SelectorFromSet(labels.Set{olmcore.LabelCopiedFrom: in.Key.Namespace})
	isOurs := func(c *v1alpha1.ClusterServiceVersion) bool { return model.IsCopyOf(in.Key, c) }
	labelled := read.Only(read.List[*v1alpha1.ClusterServiceVersion](reads, metav1.NamespaceAll, from), isOurs)
	names := targets.Named()
	for _, c := range labelled.Items {
		names = append(names, c.Namespace)
	}
	if !targets.All() {
		in.Namespaces = read.Named[*corev1.Namespace](reads, "", names)
	}
	in.Copies = read.Join(labelled, namedIn(reads, in.Key, in.Namespaces.Items))
}

// namedIn reads the ClusterServiceVersions with the name of the original in some namespaces. It omits the original.
func namedIn(
	reads *read.Reads, key types.NamespacedName, namespaces []*corev1.Namespace,
) olmcore.Observed[*v1alpha1.ClusterServiceVersion] {
	names := make([]string, 0, len(namespaces))
	for _, n := range namespaces {
		if n.Name != key.Namespace {
			names = append(names, n.Name)
		}
	}
	return read.In[*v1alpha1.ClusterServiceVersion](reads, names, key.Name)
}

// GatherConfig reads the Input of Reconcile. The caller sets Now and Checkpoint. Only the Name of key is used. If the
// OLMConfig does not exist, apierrors.IsNotFound reports true for the error. If the Reader does not read a kind
// (olmcore.ErrNotRead), the list of that kind is incomplete in the ConfigInput. GatherConfig returns the error of any
// other failed read.
func GatherConfig(ctx context.Context, r olmcore.Reader, key types.NamespacedName, config Config) (ConfigInput, error) {
	c, err := olmcore.Require[*operatorsv1.OLMConfig](ctx, r, "", key.Name)
	if err != nil {
		return ConfigInput{}, olmcore.Needed(err, "whether copies of operators are disabled")
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
