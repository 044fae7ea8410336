// SPDX-License-Identifier: Apache-2.0

// Package olmgitops writes down what the library asks for instead of doing it: each
// object to create or change becomes a YAML file in a folder, for review and for
// the tool that applies such folders.
package olmgitops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/olmcore"
)

// Folder is an olmcore.Executor that applies nothing. Creates and updates write the
// whole object as it shall be, into NAMESPACE/KIND.GROUP_NAME.yaml ("cluster" for
// what has no namespace), without what the API server fills in. Deletes remove that
// file, and are NotFound when there is none. Statuses belong to the cluster: they
// are not written. No precondition is checked, nobody is impersonated.
type Folder struct {
	Dir string
	// Skipped, when set, hears each action that left no trace: updates of a status,
	// and deletes of what has no file.
	Skipped func(a olmcore.Action)
}

// Do implements olmcore.Executor.
func (f *Folder) Do(ctx context.Context, a olmcore.Action) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch a := a.(type) {
	case olmcore.Create:
		return f.write(a.Target, a.Object, os.O_EXCL)
	case olmcore.Update:
		return f.write(a.Target, a.After, os.O_TRUNC)
	case olmcore.UpdateStatus:
		f.skip(a)
		return nil
	case olmcore.Delete:
		err := os.Remove(f.path(a.Target))
		if errors.Is(err, fs.ErrNotExist) {
			f.skip(a)
			return apierrors.NewNotFound(resource(a.Target), a.Target.Name)
		}
		return err
	default:
		return fmt.Errorf("unknown action %T", a)
	}
}

func (f *Folder) skip(a olmcore.Action) {
	if f.Skipped != nil {
		f.Skipped(a)
	}
}

// serverFields of metadata are the API server's to fill in.
var serverFields = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"}

func (f *Folder) write(target olmcore.Ref, o olmcore.Object, flag int) error {
	m, err := olmcore.ToMap(o)
	if err != nil {
		return err
	}
	delete(m, "status")
	if metadata, ok := m["metadata"].(map[string]any); ok {
		for _, field := range serverFields {
			delete(metadata, field)
		}
	}
	data, err := yaml.Marshal(m)
	if err != nil {
		return err
	}
	path := f.path(target)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return apierrors.NewAlreadyExists(resource(target), target.Name)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// path is where an object's file is; names of objects hold no separator but what
// RBAC allows, which is replaced.
func (f *Folder) path(target olmcore.Ref) string {
	namespace := target.Namespace
	if namespace == "" {
		namespace = "cluster"
	}
	kind := strings.ToLower(target.GVK().GroupKind().String())
	name := strings.NewReplacer("%", "%25", "/", "%2F", `\`, "%5C", ":", "%3A").Replace(target.Name)
	return filepath.Join(f.Dir, namespace, kind+"_"+name+".yaml")
}

func resource(target olmcore.Ref) schema.GroupResource {
	return schema.GroupResource{Group: target.GVK().Group, Resource: target.Kind}
}
