// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// kind finds a served kind by kind or resource in any case, with or without its group.
func (w *World) kind(name string) (fake.ServedKind, error) {
	var found []fake.ServedKind
	for _, k := range w.Cluster.Discovery().Kinds() {
		for _, known := range []string{k.Kind, k.Resource, k.Kind + "." + k.Group, k.Resource + "." + k.Group} {
			if strings.EqualFold(known, name) && (len(found) == 0 || found[0].GroupKind() != k.GroupKind()) {
				found = append(found, k)
				break
			}
		}
	}
	switch len(found) {
	case 0:
		return fake.ServedKind{}, fmt.Errorf("no kind %q is served", name)
	case 1:
		return found[0], nil
	}
	// Kubernetes' own kinds and OLM's come before custom ones.
	for _, k := range found {
		if k.Group == "" || k.Group == "operators.coreos.com" {
			return k, nil
		}
	}
	return fake.ServedKind{}, fmt.Errorf("kind %q is ambiguous: add the group, as in %s.%s", name, found[0].Kind, found[0].Group)
}

// target reads the words KIND NAME.
func (w *World) target(args []string) (key olmcore.Key, apiVersion string, err error) {
	if len(args) < 2 {
		return key, "", errors.New("needs KIND and NAME")
	}
	k, err := w.kind(args[0])
	if err != nil {
		return key, "", err
	}
	namespace, name := splitName(args[1])
	return olmcore.Key{Group: k.Group, Kind: k.Kind, Namespace: namespace, Name: name}, k.GroupVersion().String(), nil
}

func splitName(s string) (namespace, name string) {
	if before, after, ok := strings.Cut(s, "/"); ok {
		return before, after
	}
	return "", s
}

func show(w *World, args []string, _ []byte) (string, error) {
	key, apiVersion, err := w.target(args)
	if err != nil {
		return "", err
	}
	o, err := w.Cluster.Get(context.Background(), schema.FromAPIVersionAndKind(apiVersion, key.Kind), key.Namespace, key.Name)
	if err != nil {
		return "", err
	}
	m, err := olmcore.ToMap(o)
	if err != nil {
		return "", err
	}
	dropNulls(m)
	if len(args) == 2 {
		return text(m)
	}
	var out []string
	for _, path := range args[2:] {
		value := field(m, path)
		written, err := text(value)
		if err != nil {
			return "", err
		}
		switch value.(type) {
		case map[string]any, []any:
			out = append(out, path+":", "  "+strings.ReplaceAll(written, "\n", "\n  "))
		default:
			out = append(out, path+": "+written)
		}
	}
	return strings.Join(out, "\n"), nil
}

// field walks a path of field names; a name in brackets holds dots, as in metadata.labels[app.kubernetes.io/name].
func field(m map[string]any, path string) any {
	var value any = m
	for path != "" {
		name, rest := "", ""
		if inner, ok := strings.CutPrefix(path, "["); ok {
			name, rest, _ = strings.Cut(inner, "]")
		} else if i := strings.IndexAny(path, ".["); i >= 0 {
			name, rest = path[:i], path[i:]
		} else {
			name = path
		}
		path = strings.TrimPrefix(rest, ".")
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[name]
	}
	return value
}

func text(value any) (string, error) {
	data, err := yaml.Marshal(value)
	return strings.TrimRight(string(data), "\n"), err
}

// dropNulls removes the fields that only the typed encoding adds.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			if child == nil {
				delete(v, key)
			}
			dropNulls(child)
		}
	case []any:
		for _, child := range v {
			dropNulls(child)
		}
	}
}

func list(w *World, args []string, _ []byte) (string, error) {
	if len(args) == 0 {
		return "", errors.New("list KIND [NAMESPACE]")
	}
	k, err := w.kind(args[0])
	if err != nil {
		return "", err
	}
	namespace := ""
	if len(args) > 1 {
		namespace = args[1]
	}
	objects, err := w.Cluster.List(context.Background(), k.GroupVersionKind, namespace, nil)
	if err != nil {
		return "", err
	}
	var names []string
	for _, o := range objects {
		names = append(names, strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
	}
	return strings.Join(names, "\n"), nil
}
