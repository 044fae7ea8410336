// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

// contents is what the catalogs of all stories serve, and which bundles are in images.
var contents = content{
	catalogs: map[types.NamespacedName]*resolution.Catalog{}, since: map[types.NamespacedName]time.Time{},
	down: map[types.NamespacedName]bool{}, images: map[string]bundleImage{}, pushed: map[string]*resolution.Catalog{},
}

type content struct {
	mu       sync.Mutex
	catalogs map[types.NamespacedName]*resolution.Catalog
	since    map[types.NamespacedName]time.Time // when it was first served
	down     map[types.NamespacedName]bool
	images   map[string]bundleImage
	pushed   map[string]*resolution.Catalog // by the imageID of the catalog's image
}

// bundleImage is what is in the image of a bundle: its manifests by their file names, or why they cannot be written.
type bundleImage struct {
	files map[string]string
	fails string
}

// publish replaces what a catalog serves; nil takes it away.
func (c *content) publish(key types.NamespacedName, catalog *resolution.Catalog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.since[key]; !known {
		c.since[key] = time.Now()
	}
	if c.catalogs[key] = catalog; catalog == nil {
		delete(c.catalogs, key)
	}
}

// setDown says that the client of a catalog cannot connect, although its Pods are ready.
func (c *content) setDown(key types.NamespacedName, down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down[key] = down
	c.since[key] = time.Now()
}

func (c *content) setImage(name string, image bundleImage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.images[name] = image
}

// push puts a catalog into the image with an imageID: it is served once a Pod with that imageID serves.
func (c *content) push(imageID string, catalog *resolution.Catalog) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pushed[imageID] = catalog
}

// now is the content as it is: what it holds does not change any more.
func (c *content) now() *controllers.Catalogs {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &controllers.Catalogs{GlobalNamespace: controllers.DefaultGlobalNamespace, Content: maps.Clone(c.catalogs)}
}

func (c *content) resolve(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	return c.now().Resolve(ctx, r, request)
}

func (c *content) fingerprint(ctx context.Context, r olmcore.Reader, namespace string) (string, error) {
	return c.now().Fingerprint(ctx, r, namespace)
}

func (c *content) known(ctx context.Context, r olmcore.Reader, namespace string) (*subscription.Catalogs, error) {
	return c.now().Known(ctx, r, namespace)
}

// connection plays the gRPC client of a catalog: it is connected while a Pod of it is ready or, where the catalog is at
// an address, since something is served there.
func (c *content) connection(in catalog.Input, address string) *catalog.Connection {
	if address == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := types.NamespacedName{Namespace: in.CatalogSource.Namespace, Name: in.CatalogSource.Name}
	since, served := c.since[key]
	if !served {
		since = in.CatalogSource.CreationTimestamp.Time
	}
	failing := &catalog.Connection{Address: address, State: "TRANSIENT_FAILURE", LastTransition: since}
	if c.down[key] {
		return failing
	}
	if in.CatalogSource.Spec.Address != "" && in.CatalogSource.Spec.Image == "" {
		if !served {
			return failing
		}
		return &catalog.Connection{Address: address, State: "READY", LastTransition: since, LastConnect: since}
	}
	for _, pod := range in.Pods.Items {
		i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
		if i < 0 || pod.Labels["olm.catalogSource"] != in.CatalogSource.Name || pod.Status.Conditions[i].Status != corev1.ConditionTrue {
			continue
		}
		if at := pod.Status.Conditions[i].LastTransitionTime.Time; failing.LastConnect.IsZero() || at.Before(failing.LastConnect) {
			failing.State, failing.LastConnect, failing.LastTransition = "READY", at, at
		}
		for _, status := range pod.Status.ContainerStatuses {
			if pushed := c.pushed[status.ImageID]; pushed != nil {
				c.catalogs[key] = pushed
			}
		}
	}
	return failing
}

// unpacker is the program of the Pods that unpack bundles: it writes what is in the image that the Pod pulled into the
// ConfigMap that its arguments name, under the Pod's ServiceAccount.
type unpacker struct {
	config *rest.Config
}

func newUnpacker(plane *controlplane.ControlPlane) (*unpacker, error) {
	config, err := plane.As("unpacker")
	return &unpacker{config: config}, err
}

func (u *unpacker) run(ctx context.Context, pod *corev1.Pod) (code int32, message string) {
	if err := u.unpack(ctx, pod); err != nil {
		return 1, err.Error()
	}
	return 0, ""
}

func (u *unpacker) unpack(ctx context.Context, pod *corev1.Pod) error {
	image := ""
	for _, c := range pod.Spec.InitContainers {
		if c.Name == "pull" {
			image = c.Image
		}
	}
	contents.mu.Lock()
	bundle, known := contents.images[image]
	contents.mu.Unlock()
	if !known {
		return fmt.Errorf("there is no bundle in image %q", image)
	}
	if bundle.fails != "" {
		return fmt.Errorf("%s", bundle.fails)
	}
	command := pod.Spec.Containers[0].Command
	argument := func(flag string) string { return command[slices.Index(command, flag)+1] }
	config := rest.CopyConfig(u.config)
	config.Impersonate.UserName = "system:serviceaccount:" + pod.Namespace + ":" + pod.Spec.ServiceAccountName
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	configMaps := client.CoreV1().ConfigMaps(argument("-n"))
	cm, err := configMaps.Get(ctx, argument("-c"), metav1.GetOptions{})
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "olm.sourceImage", pod.Spec.Containers[0].Env[0].Value)
	metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "olm.contentEncoding", "gzip+base64")
	cm.BinaryData = map[string][]byte{}
	for name, text := range bundle.files {
		cm.BinaryData[name] = deflate(text)
	}
	_, err = configMaps.Update(ctx, cm, metav1.UpdateOptions{})
	return err
}

func deflate(text string) []byte {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = w.Write([]byte(text)) // a Buffer takes everything
	_ = w.Close()
	return []byte(base64.StdEncoding.EncodeToString(compressed.Bytes()))
}

// filesOf are the files of a bundle.
func filesOf(objects []olmcore.Object) map[string]string {
	files := map[string]string{}
	for i, o := range objects {
		m, err := olmcore.ToMap(o)
		if err != nil {
			panic(err)
		}
		text, err := yaml.Marshal(m)
		if err != nil {
			panic(err)
		}
		files[fmt.Sprintf("%02d-%s.yaml", i, olmcore.GVKOf(o).Kind)] = string(text)
	}
	return files
}
