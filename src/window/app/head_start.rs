//! Work that starts before the window exists.

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, select};
use eframe::egui;

use super::WindowOptions;
use super::settings_file::SettingsFile;
use crate::tasks::Waker;
use crate::window::effects::{Effects, Inbox};
use crate::window::state::{BrowseCommand, Command, Message, State};
use crate::window::update;

/// Everything behind the window: the state, the effects, and their events.
pub(crate) struct Work {
    pub(crate) state: State,
    /// Dropped before the effects, which wait for workers: no worker may then wait for space here.
    pub(crate) inbox: Inbox,
    pub(crate) effects: Effects,
    pub(crate) settings_file: SettingsFile,
    /// Woken by the workers once there is a window.
    window: Arc<OnceLock<egui::Context>>,
}

impl Work {
    fn new(options: &WindowOptions) -> Self {
        let window = Arc::new(OnceLock::<egui::Context>::new());
        let sleeping = window.clone();
        let waker = Waker::new(move || {
            if let Some(ctx) = sleeping.get() {
                ctx.request_repaint();
            }
        });
        let (effects, inbox) = Effects::start(options.dirs.clone(), waker);
        let mut settings_file = SettingsFile::new(&options.dirs.config);
        let mut work = Self { state: State::new(settings_file.read()), effects, inbox, settings_file, window };
        work.apply(Message::Command(Command::Start { source: options.source.clone(), model: options.model.clone() }));
        if let Some(place) = &options.place {
            work.apply(Message::Command(Command::Browse(BrowseCommand::OpenPlace(Box::new(place.clone())))));
        }
        work
    }

    pub(crate) fn apply(&mut self, message: Message) {
        for effect in update::update(&mut self.state, message) {
            self.effects.carry_out(effect);
        }
    }

    /// Processes the workers' reports until the window does so itself.
    fn go_on_until(mut self, window_is_there: &Receiver<()>) -> Self {
        let events = self.inbox.events.clone();
        loop {
            select! {
                recv(events) -> event => match event {
                    Ok(event) => self.apply(Message::Event(event)),
                    Err(_) => return self,
                },
                recv(window_is_there) -> _ => return self,
            }
        }
    }
}

/// Work in the first moments, while the graphics libraries create the window: images are listed, and the first one is
/// decoded.
pub(crate) struct HeadStart {
    worker: JoinHandle<Work>,
    window_is_there: Sender<()>,
}

impl HeadStart {
    pub(crate) fn begin(options: &WindowOptions) -> std::io::Result<Self> {
        let (window_is_there, there) = crossbeam_channel::bounded(1);
        let options = options.clone();
        let worker = std::thread::Builder::new()
            .name("head start".to_owned())
            .spawn(move || Work::new(&options).go_on_until(&there))?;
        Ok(Self { worker, window_is_there })
    }

    /// Hands the work over to the window.
    pub(crate) fn take_over(self, ctx: &egui::Context) -> Work {
        drop(self.window_is_there);
        let work = match self.worker.join() {
            Ok(work) => work,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        // The first caller is the only one.
        let _ = work.window.set(ctx.clone());
        work
    }
}
