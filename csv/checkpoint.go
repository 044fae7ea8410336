// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
	"k8s.io/apimachinery/pkg/types"
)

// Checkpoint remembers the versions of everything in a converged Input. Handed
// back as Input.Checkpoint it lets Reconcile answer at once as long as nothing
// changed, whatever the size of the CSV. It holds no objects. Without it the
// answer is the same, and takes longer.
type Checkpoint struct {
	config            Config
	kubernetesVersion string
	servedAPIs        olmcore.Observed[schema.GroupVersionKind]
	lists             []listVersion
	objects           []objectVersion
}

type listVersion struct {
	complete bool
	length   int
}

type objectVersion struct {
	uid             types.UID
	resourceVersion string
}

// CheckpointOf returns the Checkpoint of an Input for which Reconcile has
// nothing to do and no deadline to wait for; nil for any other, for a CSV that is
// being deleted, and when an object has no resourceVersion.
func CheckpointOf(in Input) *Checkpoint {
	if in.Checkpoint.holds(&in) {
		return in.Checkpoint
	}
	in.Checkpoint = nil
	out, err := Reconcile(in)
	if err != nil || !out.Empty() || out.RequeueAfter != 0 || in.ClusterServiceVersion.DeletionTimestamp != nil {
		return nil
	}
	p := &Checkpoint{
		config: in.Config, kubernetesVersion: in.KubernetesVersion,
		servedAPIs: olmcore.Found(slices.Clone(in.ServedAPIs.Items)...),
	}
	p.servedAPIs.Complete = in.ServedAPIs.Complete
	w := walk{record: p}
	if !w.all(&in) {
		return nil
	}
	return p
}

// holds reports whether nothing changed since the checkpoint was taken.
func (p *Checkpoint) holds(in *Input) bool {
	if p == nil || in.ClusterServiceVersion == nil || in.ClusterServiceVersion.DeletionTimestamp != nil || in.Now.IsZero() ||
		p.kubernetesVersion != in.KubernetesVersion || p.servedAPIs.Complete != in.ServedAPIs.Complete || !slices.Equal(p.servedAPIs.Items, in.ServedAPIs.Items) ||
		!sameConfig(&p.config, &in.Config) {
		return false
	}
	w := walk{compare: p}
	return w.all(in) && w.objects == len(p.objects)
}

// walk goes through the objects of an Input in a fixed order, either recording
// their versions or comparing them.
type walk struct {
	record, compare *Checkpoint
	lists, objects  int
}

func (w *walk) all(in *Input) bool {
	if !w.object(in.ClusterServiceVersion) {
		return false
	}
	return walkList(w, in.OperatorGroups) && walkList(w, in.OtherGroups) && walkList(w, in.Rivals) &&
		walkList(w, in.Neighbours) && walkList(w, in.Subscriptions) && walkList(w, in.OperatorConditions) &&
		walkList(w, in.CustomResourceDefinitions) && walkList(w, in.APIServices) && walkList(w, in.ServiceAccounts) &&
		walkList(w, in.Roles) && walkList(w, in.RoleBindings) && walkList(w, in.ClusterRoles) &&
		walkList(w, in.ClusterRoleBindings) && walkList(w, in.Deployments)
}

func walkList[P interface {
	*T
	metav1.Object
}, T any](w *walk, l olmcore.Observed[P]) bool {
	v := listVersion{l.Complete, len(l.Items)}
	if w.record != nil {
		w.record.lists = append(w.record.lists, v)
	} else if w.compare.lists[w.lists] != v {
		return false
	}
	w.lists++
	for _, o := range l.Items {
		if o == nil || !w.object(o) {
			return false
		}
	}
	return true
}

func (w *walk) object(o metav1.Object) bool {
	v := objectVersion{o.GetUID(), o.GetResourceVersion()}
	if w.record != nil {
		w.record.objects = append(w.record.objects, v)
		return v.resourceVersion != ""
	}
	if w.objects >= len(w.compare.objects) || w.compare.objects[w.objects] != v {
		return false
	}
	w.objects++
	return true
}

func sameConfig(a, b *Config) bool {
	return a.InstallTimeout == b.InstallTimeout && a.ReplacementGrace == b.ReplacementGrace && a.HalfMadeGrace == b.HalfMadeGrace && a.UnmetGrace == b.UnmetGrace &&
		a.AdoptForeignDeployments == b.AdoptForeignDeployments && a.CorrectDrift == b.CorrectDrift &&
		a.GateReplacing == b.GateReplacing && a.RepairPermissions == b.RepairPermissions && a.KeyPrefix == b.KeyPrefix &&
		slices.Equal(a.ExcludedAnnotations, b.ExcludedAnnotations) && slices.Equal(a.ProxyEnv, b.ProxyEnv)
}
