"""Rows of the JVM, Ruby, PHP and .NET: their registries are folders of this machine that the script serves on loopback."""

import shutil
import subprocess
from pathlib import Path

APP = "package work;\n\npublic class App {\n    public static int sum(int a, int b) { return a + b; }\n}\n"
APP_TEST = ("package work;\n\nimport static org.junit.Assert.assertEquals;\nimport org.junit.Test;\n\npublic class AppTest {\n"
            "    @Test public void sums() { assertEquals(3, App.sum(1, 2)); }\n}\n")
POM = ('<project xmlns="http://maven.apache.org/POM/4.0.0">\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>work</groupId><artifactId>work</artifactId><version>1</version>\n'
       "  <properties><maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>"
       "<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>\n"
       "  <dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope></dependency></dependencies>\n</project>\n")
MIRROR = ("<settings><mirrors><mirror><id>loopback</id><mirrorOf>*</mirrorOf><url>http://maven.example.org/</url></mirror></mirrors>"
          "<localRepository>{work}/.m2</localRepository></settings>\n")
GRADLE = ("apply plugin: 'java'\nrepositories { maven { url 'http://maven.example.org/' } }\ndependencies { testCompile 'junit:junit:4.x' }\n")
SPEC = "Gem::Specification.new do |s|\n  s.name = 'answer'; s.version = '1.0.0'; s.summary = 'answer'; s.authors = ['u']; s.files = ['lib/answer.rb']\nend\n"
PHP_TEST = "<?php\nrequire 'vendor/autoload.php';\nexit(Answer\\whole() === 42 ? 0 : 1);\n"


def maven(_):
    """Returns Debian's own Maven repository as the host to serve."""
    return {"maven.example.org": Path("/usr/share/maven-repo")}


def gems(base):
    """Builds a gem and the index of a server of gems."""
    at = Path(base) / "served/gems"
    (at / "gems").mkdir(parents=True)
    (at / "lib").mkdir()
    (at / "lib/answer.rb").write_text("module Answer\n  WHOLE = 42\nend\n")
    (at / "answer.gemspec").write_text(SPEC)
    subprocess.run(["gem", "build", "-q", "answer.gemspec", "-o", "gems/answer-1.0.0.gem"], cwd=at, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["gem", "generate_index", "-q", "-d", "."], cwd=at, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {"gems.example.org": at}


def packages(base):
    """Packs a PHP package and writes the index of a repository of Composer."""
    import json
    at = Path(base) / "served/packages"
    (at / "answer").mkdir(parents=True)
    (at / "answer/answer.php").write_text("<?php\nnamespace Answer;\nfunction whole() { return 42; }\n")
    (at / "answer/composer.json").write_text('{"name":"example/answer","autoload":{"files":["answer.php"]}}')
    shutil.make_archive(str(at / "answer-1.0.0"), "zip", at / "answer")
    dist = {"url": "http://packages.example.org/answer-1.0.0.zip", "type": "zip"}
    one = {"name": "example/answer", "version": "1.0.0", "dist": dist, "autoload": {"files": ["answer.php"]}}
    (at / "packages.json").write_text(json.dumps({"packages": {"example/answer": {"1.0.0": one}}}))
    return {"packages.example.org": at}


ROWS = [
    {"name": "Maven", "needs": "mvn", "apt": "maven junit4 libsurefire-java libmaven-compiler-plugin-java libmaven-resources-plugin-java libmaven-jar-plugin-java",
     "where": "/usr/share/maven-repo/junit", "serve": maven, "note": "from Debian's repository on loopback",
     "files": {"pom.xml": POM, "src/main/java/work/App.java": APP, "src/test/java/work/AppTest.java": APP_TEST, "settings.xml": MIRROR,
               ".gitignore": "target/\n.m2/\n"},
     "lines": ["mvn -q -B -s settings.xml package"]},
    {"name": "Gradle", "needs": "gradle", "apt": "gradle junit4", "where": "/usr/share/maven-repo/junit", "serve": maven,
     "note": "from Debian's repository on loopback", "env": {"GRADLE_USER_HOME": "{work}/.gradle-home"},
     "files": {"build.gradle": GRADLE, "settings.gradle": "rootProject.name = 'work'\n", "src/main/java/work/App.java": APP,
               "src/test/java/work/AppTest.java": APP_TEST, ".gitignore": "build/\n.gradle/\n.gradle-home/\n"},
     "lines": ["gradle -q --no-daemon build"]},
    {"name": "Bundler", "needs": "bundle", "apt": "bundler ruby-minitest", "serve": gems, "note": "its gem from loopback",
     "files": {"Gemfile": "source 'http://gems.example.org'\ngem 'answer'\n", ".bundle/config": '---\nBUNDLE_PATH: "vendor/bundle"\n',
               "test_work.rb": "require 'answer'\nexit Answer::WHOLE == 42\n", ".gitignore": "vendor/\n"},
     "lines": ["bundle install --quiet", "bundle exec ruby test_work.rb"]},
    {"name": "Composer", "needs": "composer", "apt": "composer", "serve": packages, "note": "its package from loopback",
     "files": {"composer.json": '{"repositories":[{"type":"composer","url":"http://packages.example.org"},{"packagist.org":false}],'
               '"require":{"example/answer":"1.0.0"},"config":{"secure-http":false}}', "test.php": PHP_TEST, ".gitignore": "vendor/\n"},
     "lines": ["composer install --no-interaction --quiet", "php test.php"]},
    {"name": ".NET", "needs": "dotnet", "files": {}, "lines": ["dotnet new console -o app && dotnet build app"]},
]
