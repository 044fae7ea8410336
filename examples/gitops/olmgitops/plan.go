// SPDX-License-Identifier: Apache-2.0

// Package olmgitops writes down what the library asks for instead of doing it: as
// YAML, for review and for the tool that applies such folders.
package olmgitops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Plan is an olmcore.Executor that applies nothing, and the olmcore.Reader of the cluster as it would be if all was
// applied. UIDs and resourceVersions are preconditions as they are for an API server, so that what was planned once is
// not planned over. A Plan is for one goroutine.
type Plan struct {
	// Snapshot is the cluster as it would be.
	*olmcore.Snapshot
	// IgnoreAccounts: what must run as a ServiceAccount is planned like the rest, and happens with the rights of who
	// applies the folder. False: it is refused, as a manifest cannot say whose rights it is written with.
	IgnoreAccounts bool
	// Now is when objects are created, nil the present.
	Now      func() time.Time
	observed *olmcore.Snapshot
	writes   int
}

// New returns an empty plan for a cluster as it was observed.
func New(observed *olmcore.Snapshot) *Plan { return &Plan{Snapshot: observed, observed: observed} }

// Do implements olmcore.Executor.
func (p *Plan) Do(ctx context.Context, a olmcore.Action) error {
	r, err := olmcore.RecordOf(a)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	if r.As != nil && !p.IgnoreAccounts {
		return apierrors.NewForbidden(schema.GroupResource{Group: r.Target.GVK().Group, Resource: r.Target.Kind}, r.Target.Name,
			fmt.Errorf("it must be written as ServiceAccount %s/%s, which a manifest cannot say", r.As.Namespace, r.As.Name))
	}
	current := p.Find(r.Target.GVK().GroupKind(), r.Target.Namespace, r.Target.Name)
	next, err := decode.Apply(r, current)
	if err != nil {
		return err
	}
	if secret, ok := next.(*corev1.Secret); ok && hasPrivateKey(secret) {
		return apierrors.NewForbidden(corev1.Resource("secrets"), secret.Name, errors.New("a private key belongs into no folder"))
	}
	objects := slices.DeleteFunc(slices.Clone(p.Objects()), func(o olmcore.Object) bool { return o == current })
	if next != nil {
		p.writes++
		version := fmt.Sprintf("planned-%d", p.writes)
		next.SetResourceVersion(version)
		if current == nil {
			now := time.Now
			if p.Now != nil {
				now = p.Now
			}
			next.SetUID(types.UID(version))
			next.SetCreationTimestamp(olmcore.Timestamp(now()))
		}
		objects = append(objects, next)
	}
	p.Snapshot, err = olmcore.NewSnapshot(objects, p.Scopes()...)
	return err
}

// hasPrivateKey reports whether a Secret holds a private key: that of a certificate, also of one that is to follow, or
// any in PEM.
func hasPrivateKey(s *corev1.Secret) bool {
	for key, value := range s.Data {
		if strings.HasSuffix(key, corev1.TLSPrivateKeyKey) && len(value) > 0 || bytes.Contains(value, []byte("PRIVATE KEY-----")) {
			return true
		}
	}
	for key, value := range s.StringData {
		if strings.HasSuffix(key, corev1.TLSPrivateKeyKey) && value != "" || strings.Contains(value, "PRIVATE KEY-----") {
			return true
		}
	}
	return false
}

// Write writes into a folder what differs between the cluster as it was observed and as it would be. Below apply is a
// manifest of each object to create or to change, NAMESPACE/KIND.GROUP_NAME.yaml ("cluster" for what has no namespace);
// those of earlier plans stay as long as the objects do. What no manifest can say stands in status.yaml, replace.yaml
// (objects that are being deleted) and delete.yaml: orders of this plan alone, with the UIDs and resourceVersions that
// were observed. Files that a plan did not write are left alone.
func (p *Plan) Write(dir string) error {
	files := map[string][]any{} // the documents of each
	for _, o := range p.observed.Objects() {
		if next := same(p.Snapshot, o); next == nil || next.GetUID() != o.GetUID() {
			files["delete.yaml"] = append(files["delete.yaml"], order(olmcore.RefOf(o), map[string]any{}))
		}
	}
	stay := map[string]bool{}
	for _, o := range p.Objects() {
		manifestFile, ends := manifestPath(o), o.GetDeletionTimestamp() != nil // a manifest would make it anew
		stay[manifestFile] = !ends
		before := same(p.observed, o)
		if before == o {
			continue
		}
		manifest, status, err := split(o)
		oldManifest, oldStatus, errBefore := split(before)
		if err = errors.Join(err, errBefore); err != nil {
			return err
		}
		was := olmcore.RefOf(before)
		if was.UID == o.GetUID() && !reflect.DeepEqual(status, oldStatus) { // what is new gets its status later
			files["status.yaml"] = append(files["status.yaml"], order(was, map[string]any{"status": status}))
		}
		switch changed := !reflect.DeepEqual(manifest, oldManifest); {
		case changed && ends:
			files["replace.yaml"] = append(files["replace.yaml"], order(was, manifest))
		case changed:
			files[manifestFile] = []any{manifest}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // no path and no link leads out of it
	if err != nil {
		return err
	}
	err = clear(root, stay)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err = errors.Join(err, write(root, name, files[name]))
	}
	return errors.Join(err, root.Close())
}

// same finds an object, or another incarnation of it.
func same(s *olmcore.Snapshot, o olmcore.Object) olmcore.Object {
	return s.Find(olmcore.GVKOf(o).GroupKind(), o.GetNamespace(), o.GetName())
}

// split returns what is an object's own, without what the API server fills in, and its status.
func split(o olmcore.Object) (manifest map[string]any, status any, err error) {
	if o == nil {
		return nil, nil, nil
	}
	if manifest, err = olmcore.ToMap(o); err != nil {
		return nil, nil, err
	}
	status = manifest["status"]
	delete(manifest, "status")
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds",
	} {
		unstructured.RemoveNestedField(manifest, "metadata", field)
	}
	return manifest, status, nil
}

// order adds to a document which object it is about, in which state.
func order(ref olmcore.Ref, document map[string]any) any {
	u := &unstructured.Unstructured{Object: document}
	u.SetGroupVersionKind(ref.GVK())
	u.SetNamespace(ref.Namespace)
	u.SetName(ref.Name)
	u.SetUID(ref.UID)
	u.SetResourceVersion(ref.ResourceVersion)
	return document
}

// header begins each file that a plan writes.
const header = "# Written by a plan. The next one may change or remove it.\n"

// write writes a file of YAML documents.
func write(root *os.Root, path string, documents []any) error {
	texts := make([][]byte, len(documents))
	for i, document := range documents {
		var err error
		if texts[i], err = printable.YAML(document); err != nil {
			return err
		}
	}
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return root.WriteFile(path, append([]byte(header), bytes.Join(texts, []byte("---\n"))...), 0o644)
}

// clear removes the files of earlier plans but for those that stay.
func clear(root *os.Root, stay map[string]bool) error {
	files, err := fs.Glob(root.FS(), "*.yaml")
	manifests, errBelow := fs.Glob(root.FS(), "apply/*/*.yaml")
	err = errors.Join(err, errBelow)
	for _, file := range append(files, manifests...) {
		name := filepath.FromSlash(file)
		if text, unread := root.ReadFile(name); unread == nil && !stay[name] && bytes.HasPrefix(text, []byte(header)) {
			err = errors.Join(err, root.Remove(name))
		}
	}
	return err
}

// manifestPath returns the path of an object's manifest in the folder. The objects may come from files that no API
// server has checked, so a namespace or a kind may hold what leads out of the folder.
func manifestPath(o olmcore.Object) string {
	kind := strings.ToLower(olmcore.GVKOf(o).GroupKind().String())
	return filepath.Join("apply", cmp.Or(segment(o.GetNamespace()), "cluster"), segment(kind)+"_"+segment(o.GetName())+".yaml")
}

// segment returns a text as one segment of a path. Names of Roles may hold a colon, which is no part of a file name
// everywhere.
func segment(text string) string {
	escaped := escape.Replace(text)
	if strings.Trim(escaped, ".") == "" {
		escaped = strings.ReplaceAll(escaped, ".", "%2E")
	}
	return escaped
}

var escape = strings.NewReplacer("%", "%25", "/", "%2F", `\`, "%5C", ":", "%3A", "\x00", "%00")
