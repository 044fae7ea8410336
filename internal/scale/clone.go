// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/big"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/objecthash"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// template is what the installation of one tenant's Subscriptions came to.
type template struct {
	namespace string
	objects   []map[string]any
	uids      map[string]bool
	csvs      []*v1alpha1.ClusterServiceVersion
	// made are the specs of Deployments as they were written, of which their labels have the hash.
	made map[string]*appsv1.DeploymentSpec
}

// templateOf takes what there is in a namespace, and in the whole cluster for its operators and its OperatorGroup.
func (w *world) templateOf(ctx context.Context, namespace string) (*template, error) {
	t := &template{namespace: namespace, uids: map[string]bool{}, made: w.server.deployments}
	var err error
	if t.csvs, err = olmcore.List[*v1alpha1.ClusterServiceVersion](ctx, w.server.Cluster, namespace, nil); err != nil {
		return nil, err
	}
	for _, o := range w.server.Objects() {
		owner, isOwned := olmcore.OwnerOf(o.GetLabels())
		switch kind := olmcore.GVKOf(o).Kind; {
		case o.GetNamespace() == namespace:
		case kind == "Namespace" && o.GetName() == namespace:
		case o.GetNamespace() == "" && isOwned && owner.Namespace == namespace:
		default:
			continue
		}
		values, err := olmcore.ToMap(o)
		if err != nil {
			return nil, err
		}
		t.objects = append(t.objects, values)
		t.uids[string(o.GetUID())] = true
	}
	return t, nil
}

// clusterNames are the names that depend on a namespace of the objects outside of it: the permissions of its versions,
// and the roles of its OperatorGroup.
func (t *template) clusterNames(namespace string) (names []string, err error) {
	for _, suffix := range []string{"admin", "edit", "view"} {
		sum := sha256.Sum224([]byte(namespace + "/group/" + suffix))
		names = append(names, "olm.og.group."+suffix+"-"+new(big.Int).SetBytes(sum[:]).Text(62))
	}
	for _, c := range t.csvs {
		c = c.DeepCopy()
		c.Namespace = namespace
		objects, err := olmcore.PermissionObjects(c)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if kind := olmcore.GVKOf(o).Kind; strings.HasPrefix(kind, "ClusterRole") {
				names = append(names, o.GetName())
			}
		}
	}
	return names, nil
}

// clone loads what a template has as another tenant's.
func (w *world) clone(t *template, namespace string) error {
	from, err := t.clusterNames(t.namespace)
	if err != nil {
		return err
	}
	to, err := t.clusterNames(namespace)
	if err != nil {
		return err
	}
	texts := map[string]string{t.namespace: namespace}
	for i := range from {
		texts[from[i]] = to[i]
	}
	var objects []olmcore.Object
	for _, values := range t.objects {
		renamed := t.renamed(values, namespace, texts).(map[string]any)
		delete(renamed["metadata"].(map[string]any), "resourceVersion")
		o := olmcore.NewObject(gvkOf(values))
		if err := decode.FromMap(renamed, o); err != nil {
			return err
		}
		if d, is := o.(*appsv1.Deployment); is {
			if d.Labels["olm.deployment-spec-hash"], err = t.hash(d, namespace, texts); err != nil {
				return err
			}
		}
		objects = append(objects, o)
	}
	return w.server.Load(objects...)
}

// hash is that of the spec with which a Deployment would have been made in a namespace.
func (t *template) hash(d *appsv1.Deployment, namespace string, texts map[string]string) (string, error) {
	values, err := olmcore.ToMap(&appsv1.Deployment{Spec: *t.made[t.namespace+"/"+d.Name]})
	if err != nil {
		return "", err
	}
	var renamed appsv1.Deployment
	if err := decode.FromMap(t.renamed(values, namespace, texts).(map[string]any), &renamed); err != nil {
		return "", err
	}
	return objecthash.Hash(&renamed.Spec)
}

// renamed copies values, with the names and UIDs of another tenant.
func (t *template) renamed(value any, namespace string, texts map[string]string) any {
	switch value := value.(type) {
	case map[string]any:
		next := make(map[string]any, len(value))
		for key, v := range value {
			next[t.text(key, namespace, texts)] = t.renamed(v, namespace, texts)
		}
		return next
	case []any:
		next := make([]any, len(value))
		for i, v := range value {
			next[i] = t.renamed(v, namespace, texts)
		}
		return next
	case string:
		return t.text(value, namespace, texts)
	}
	return value
}

func (t *template) text(s, namespace string, texts map[string]string) string {
	if next, ok := texts[s]; ok {
		return next
	}
	prefix, uid := "", s
	if i := strings.LastIndex(s, "/"); i >= 0 { // a label key with a UID
		prefix, uid = s[:i+1], s[i+1:]
	}
	if t.uids[uid] {
		return prefix + uid + "-" + namespace
	}
	if strings.HasPrefix(s, "operators.coreos.com/") || len(s) < 120 && strings.Contains(s, t.namespace) {
		return strings.ReplaceAll(s, t.namespace, namespace)
	}
	return s
}

// others adds what tenants have besides their operators: the Pods of these, and the workloads, ConfigMaps and Secrets
// of their own that a manager of the whole cluster sees, too.
func (w *world) others(ctx context.Context, namespace string) error {
	deployments, err := olmcore.List[*appsv1.Deployment](ctx, w.server.Cluster, namespace, nil)
	if err != nil {
		return err
	}
	var objects []olmcore.Object
	for i, d := range deployments {
		objects = append(objects, podOf(d.Namespace, d.Name+"-5d8f7c9b4-x2x4z", i%w.Nodes, d.Spec.Template))
	}
	own := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	own.Spec.Containers = []corev1.Container{{Name: "web", Image: "registry.example.com/web:1"}}
	for i := range ownOfEach {
		name := fmt.Sprint("own-", i)
		objects = append(objects, podOf(namespace, name, i%w.Nodes, own),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"config": text(namespace+name, 4<<10)}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sh.helm.release.v1." + name, Labels: map[string]string{"owner": "helm"}}, Type: "helm.sh/release.v1",
				Data: map[string][]byte{"release": []byte(text(namespace+name+"r", 6<<10))}})
	}
	return w.server.Load(objects...)
}

const ownOfEach = 10

func podOf(namespace, name string, node int, t corev1.PodTemplateSpec) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	p.Namespace, p.Name, p.UID = namespace, name, types.UID("pod-"+namespace+"-"+name)
	p.Spec.NodeName = nodeName(node)
	p.Status.Phase = corev1.PodRunning
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)})
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}}})
	}
	return p
}

func nodeName(n int) string { return fmt.Sprintf("node-%02d", n) }
